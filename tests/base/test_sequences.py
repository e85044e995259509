"""Small functions on numbers and sequences."""

import pytest

from glassgrad.base.sequences import (
    all_int,
    all_same,
    argfix,
    dedup,
    get_child,
    get_shape,
    get_single_element,
    make_tuple,
    merge_dicts,
    next_power2,
    round_down,
    round_up,
    unwrap,
)


def test_sizes_come_one_by_one_or_as_one_sequence():
    assert argfix() == ()
    assert argfix([]) == ()
    with pytest.raises(ValueError, match="not both"):
        argfix((1, 2), 3)


def test_all_same_of_nothing_is_true():
    assert all_same([])
    assert all_same([1, 1])
    assert not all_same([1, 2])


def test_all_int():
    assert all_int((1, 2))
    assert not all_int((1, 2.0))


def test_dedup_keeps_the_order():
    assert dedup([3, 1, 3, 2, 1]) == [3, 1, 2]


def test_make_tuple_keeps_sequences():
    assert make_tuple((1, 2, 3), 2) == (1, 2, 3)


def test_dicts_merge_if_they_agree():
    assert merge_dicts([{"a": 1}, {"a": 1, "b": 2}]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="conflicting values for 'a': 1 and 2"):
        merge_dicts([{"a": 1}, {"a": 2}])


def test_missing_values_are_an_error():
    assert unwrap(0) == 0
    with pytest.raises(ValueError, match="not None"):
        unwrap(None)
    assert get_single_element([7]) == 7
    with pytest.raises(ValueError, match="not 2"):
        get_single_element([1, 2])


def test_children_are_found_by_attribute_key_and_index():
    class Layer:
        weights = [{"w": 5}]

    assert get_child(Layer(), "weights.0.w") == 5


def test_rounding_to_steps():
    assert (round_up(5, 4), round_up(8, 4), round_down(7, 4)) == (8, 8, 4)
    assert [next_power2(n) for n in (1, 2, 3, 1025)] == [1, 2, 4, 2048]


def test_shapes_of_nested_lists():
    assert get_shape(3) == ()
    assert get_shape([]) == (0,)
    assert get_shape([[], []]) == (2, 0)
    with pytest.raises(ValueError, match="differ in shape"):
        get_shape([[1], [2, 3]])
