"""Finding the tensors of a model, and giving it others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor, TinyJit, dtypes
from glassgrad.base.errors import FormatError, GradientError
from glassgrad.nn import BatchNorm, Linear, state
from glassgrad.nn.optim import SGD
from glassgrad.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Model:
    def __init__(self) -> None:
        self.layers = [Linear(2, 3), Linear(3, 1, bias=False)]
        self.scale = Tensor([1.0])
        self.steps = Tensor([0], requires_grad=False)
        self.extra = {"shift": Tensor([2.0])}
        self.me = self


def test_tensors_are_named_by_the_path_to_them() -> None:
    names = list(get_state_dict(Model()))
    assert names == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "scale", "steps", "extra.shift",
    ]  # fmt: skip
    assert next(iter(get_state_dict(Model(), "net"))) == "net.layers.0.weight"


def test_named_tuples_have_names() -> None:
    class Pair(NamedTuple):
        left: Tensor
        right: Tensor

    assert list(get_state_dict(Pair(Tensor([1]), Tensor([2])))) == ["left", "right"]


def test_captured_functions_and_classes_are_no_part_of_a_model() -> None:
    class Fast(Model):
        shared = Tensor([1.0])

        def __init__(self) -> None:
            super().__init__()
            self.forward = TinyJit(self.compute)
            self.kind = Fast

        def compute(self, x: Tensor) -> Tensor:
            return self.layers[0](x)

    model = Fast()
    for _ in range(3):
        model.forward(Tensor.ones(1, 2).realize())
    assert list(get_state_dict(model)) == list(get_state_dict(Model()))


def test_parameters_are_the_tensors_that_are_trained() -> None:
    model = Model()
    found = get_parameters(model)
    assert len(found) == 5
    assert all(tensor is not model.steps for tensor in found)


def test_a_tensor_with_two_names_is_one_parameter() -> None:
    first, last = Linear(3, 3), Linear(3, 3, bias=False)
    last.weight = first.weight
    assert list(get_state_dict([first, last])) == ["0.weight", "0.bias", "1.weight"]
    assert len(get_parameters([first, last])) == 2


class Holder:
    """A model that is one tensor."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight


def base() -> Tensor:
    return Tensor(np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3))


RESULTS: dict[str, Callable[[], Tensor]] = {
    "a product": lambda: Tensor.randn(2, 3) * 0.02,
    "halves": lambda: base().half(),
    "bfloat16": lambda: base().cast("bfloat16"),
    "a reshape": lambda: base().reshape(3, 2),
    "a transpose": lambda: base().T,
    "contiguous": lambda: base().T.contiguous(),
    "a clone": lambda: base().clone(),
    "another place": lambda: base().to("CPU"),
    "cat": lambda: base().cat(base() * 2),
    "stack": lambda: Tensor.stack(base(), base()),
    "a part": lambda: base()[1:],
    "realised": lambda: (base() * 0.5).realize(),
    "of ints": lambda: Tensor.arange(6).float(),
    "of a constant": lambda: Tensor.ones(2, 3) + 1,
    "of a constant and a mask": lambda: Tensor.ones(2, 3) * Tensor.ones(2, 3, requires_grad=False),
    "asked for": lambda: base().detach().requires_grad_(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_model_trains_the_results_that_it_holds(name: str) -> None:
    Tensor.manual_seed(3)
    model = Holder(RESULTS[name]())
    held, start = model.weight, model.weight.numpy().astype(np.float64)
    assert [tensor is held for tensor in get_parameters(model)] == [True]
    optimizer = SGD(get_parameters(model), lr=0.25)
    for _ in range(2):
        optimizer.zero_grad()
        model.weight.float().square().sum().backward()
        optimizer.step()
    assert model.weight is held
    np.testing.assert_allclose(held.numpy(), start * 0.25, rtol=1e-2)


def test_a_result_gets_its_gradient_without_an_optimiser() -> None:
    layer = Linear(2, 1, bias=False)
    layer.weight = layer.weight * 0.5
    (weight,) = get_parameters(layer)
    layer(Tensor([[3.0, 4.0]], requires_grad=False)).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[3.0, 4.0]]


def no_grad_result() -> Tensor:
    with Tensor.no_grad():
        return base() * 2


REFUSED: dict[str, Callable[[], Tensor]] = {
    "asked not to": lambda: Tensor([1.0], requires_grad=False),
    "told later": lambda: (base() * 2).requires_grad_(requires_grad=False),
    "set later": lambda: _with_flag(base()),
    "detached": lambda: (base() * 2).detach(),
    "detached and realised": lambda: (base() * 2).detach().realize(),
    "without gradients": no_grad_result,
    "without gradients, realised": lambda: no_grad_result().realize(),
    "a mask": lambda: Tensor.ones(3, 3, requires_grad=False).tril(),
    "a realised mask": lambda: Tensor.full((3, 3), -1.0, requires_grad=False).triu(1).realize(),
    "a refused half": lambda: Tensor([1.0, 2.0], requires_grad=False).half().reshape(2, 1),
    "a refused product": lambda: Tensor([1.0], requires_grad=False) * 3 + 1,
    "a refused clone": lambda: Tensor([1.0], requires_grad=False).clone(),
    "normal": lambda: Tensor.normal(3, requires_grad=False),
    "uniform": lambda: Tensor.uniform(3, requires_grad=False),
    "evenly spaced": lambda: Tensor.linspace(0, 1, 3, requires_grad=False),
    "copied": lambda: copy.deepcopy(Tensor([1.0], requires_grad=False)),
    "ints": lambda: Tensor.arange(3),
    "bools": lambda: Tensor([True, False]),
}


def _with_flag(tensor: Tensor) -> Tensor:
    tensor.requires_grad = False
    return tensor


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_does_not_train_what_was_refused(name: str) -> None:
    model = Holder(REFUSED[name]())
    assert get_parameters(model) == []
    assert list(get_state_dict(model)) == ["weight"]


CREATORS = (
    "zeros", "ones", "empty", "eye", "rand", "randn", "uniform", "normal", "scaled_uniform",
    "glorot_uniform", "kaiming_uniform", "kaiming_normal",
)  # fmt: skip
LIKES = ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")


@pytest.mark.parametrize("name", [*CREATORS, *LIKES])
def test_no_creation_function_forgets_that_a_gradient_was_refused(name: str) -> None:
    make = getattr(Tensor if name in CREATORS else Tensor.ones(3, 3), name)
    shape = (3, 3) if name in CREATORS else ()
    assert get_parameters([make(*shape, requires_grad=False)]) == []
    assert len(get_parameters([make(*shape)])) == 1
    if name in ("rand", "randn"):
        assert get_parameters([make(0, requires_grad=False)]) == []


def test_a_model_that_holds_ints_and_bools_trains() -> None:
    class Picky:
        def __init__(self) -> None:
            self.weight, self.order = Tensor([1.0, 2.0, 3.0]), Tensor.arange(3)
            self.mask = Tensor([True, False, True])

        def __call__(self) -> Tensor:
            return self.mask.where(self.weight[self.order], 0).sum()

    model = Picky()
    optimizer = SGD(get_parameters(model), lr=1.0)
    model().backward()
    optimizer.step()
    assert model.weight.tolist() == [0.0, 2.0, 2.0]
    with pytest.raises(GradientError, match=r"parameter 0 of shape \(3,\) has dtype int32"):
        SGD([model.order])


# ---------------------------------------------------------------------- loading


def given(**changed: Any) -> dict[str, Tensor]:
    found = {name: tensor + 1 for name, tensor in get_state_dict(Model()).items()}
    return {**found, **{name.replace("__", "."): tensor for name, tensor in changed.items()}}


def test_load_state_dict_copies_the_values_of_another_model() -> None:
    model, others = Model(), given()
    assert len(load_state_dict(model, others)) == 6
    for name, tensor in get_state_dict(model).items():
        np.testing.assert_array_equal(tensor.numpy(), others[name].numpy())
    assert model.scale.is_param
    assert not model.steps.is_param


def test_a_captured_function_uses_loaded_values() -> None:
    layer = Linear(2, 1, bias=False)
    layer.weight.realize()
    call = TinyJit(lambda x: layer(x))
    x = Tensor([[1.0, 10.0]])
    for _ in range(3):
        call(x)
    load_state_dict(layer, {"weight": Tensor([[1.0, 2.0]])})
    assert call(x).tolist() == [[21.0]]


def test_values_get_the_dtype_of_the_model() -> None:
    layer = Linear(1, 1, bias=False)
    load_state_dict(layer, {"weight": Tensor([[1.5]]).cast(dtypes.float16)})
    assert layer.weight.dtype is dtypes.float32
    assert layer.weight.item() == 1.5


def test_single_numbers_may_have_an_axis() -> None:
    norm = BatchNorm(2)
    others = {**get_state_dict(norm), "num_batches_tracked": Tensor([7])}
    load_state_dict(norm, others)
    assert norm.num_batches_tracked.shape == ()
    assert norm.num_batches_tracked.item() == 7


def test_mismatches_are_listed() -> None:
    wrong = given(extra__more=Tensor([1]), scale=Tensor([1.0, 2.0]))
    del wrong["layers.1.weight"]
    with pytest.raises(FormatError) as error:
        load_state_dict(Model(), wrong)
    assert "missing: layers.1.weight" in str(error.value)
    assert "unexpected: extra.more" in str(error.value)
    assert "scale is (2,) instead of (1,)" in str(error.value)
    assert "strict=False" in str(error.value)


def test_long_lists_are_cut() -> None:
    with pytest.raises(FormatError, match=r"unexpected: a0, .*, a7 and 12 more"):
        load_state_dict({}, {f"a{number}": Tensor([1]) for number in range(20)})


def test_strict_false_loads_what_matches() -> None:
    model, wrong = Model(), given(extra__more=Tensor([1]), scale=Tensor([1.0, 2.0]))
    with pytest.warns(UserWarning, match="not loaded: unexpected: extra.more; of another shape"):
        loaded = load_state_dict(model, wrong, strict=False, consume=True)
    assert len(loaded) == 5
    assert sorted(wrong) == ["extra.more", "scale"]
    assert model.scale.item() == 1.0
    load_state_dict(model, wrong, strict=False, verbose=False)


def test_weights_of_a_file_are_used_without_a_copy(tmp_path: Any) -> None:
    path = tmp_path / "w.safetensors"
    layer = Linear(64, 64)
    safe_save(get_state_dict(layer), path)
    loaded = Linear(64, 64)
    load_state_dict(loaded, safe_load(path))
    assert loaded.weight.tolist() == layer.weight.tolist()
    assert loaded.weight.device == "CPU"
    assert not loaded.weight.numpy().flags.writeable


def test_running_statistics_are_saved_too(tmp_path: Any) -> None:
    norm, path = BatchNorm(2), tmp_path / "n.safetensors"
    with Tensor.train():
        norm(Tensor([[1.0, 2.0], [3.0, 6.0]])).realize()
    safe_save(get_state_dict(norm), path)
    other = BatchNorm(2)
    load_state_dict(other, safe_load(path))
    np.testing.assert_allclose(other.running_mean.numpy(), [0.2, 0.4], rtol=1e-6)
    assert other.num_batches_tracked.item() == 1


def test_readers_of_other_formats_are_found_here() -> None:
    for name in state.LAZY_IMPORTS:
        assert callable(getattr(state, name))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        state.nonsense


def test_attributes_in_slots_belong_to_a_model() -> None:
    class Base:
        __slots__ = "first"

    class Model(Base):
        __slots__ = ("empty", "layer")

        def __init__(self) -> None:
            self.first, self.layer = Tensor([1.0]), Linear(1, 1)

    @dataclass(slots=True)
    class Pair:
        left: Tensor
        right: Tensor

    assert list(get_state_dict(Model())) == ["first", "layer.weight", "layer.bias"]
    assert list(get_state_dict([Pair(Tensor([1.0]), Tensor([2.0]))])) == ["0.left", "0.right"]


def test_arrays_are_loaded_as_tensors_are() -> None:
    layer = Linear(2, 1)
    load_state_dict(layer, {"weight": np.array([[1.0, 2.0]]), "bias": np.array([3.0], np.float32)})
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert layer.bias is not None
    assert layer.bias.tolist() == [3.0]
    assert layer.weight.dtype.name == "float32"


def test_tensors_of_pytorch_are_loaded() -> None:
    torch = oracle("torch")
    theirs, layer = torch.nn.Linear(2, 3), Linear(2, 3)
    load_state_dict(layer, theirs.state_dict())
    x = np.ones((1, 2), np.float32)
    wanted = theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("is_tensor", [False, True])
@pytest.mark.parametrize("is_computed", [False, True])
def test_training_does_not_change_loaded_arrays(is_tensor: bool, is_computed: bool) -> None:
    arrays = {"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)}
    layer = Linear(2, 1)
    if is_computed:
        Tensor.realize(*get_parameters(layer))
    given: dict[str, Any] = arrays
    if is_tensor:
        given = {name: Tensor(array).reshape(array.shape) for name, array in arrays.items()}
    load_state_dict(layer, given)
    del given
    optimizer = SGD(get_parameters(layer), lr=1.0)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [[0.0, -1.0]]
    assert arrays["weight"].tolist() == [[1.0, 1.0]]
    assert arrays["bias"].tolist() == [0.0]


def test_values_that_are_no_arrays_are_named() -> None:
    layer = Linear(2, 1)
    with pytest.raises(FormatError, match=r"weight is a list instead of \(1, 2\)"):
        load_state_dict(layer, {"weight": [[1.0, 2.0]], "bias": Tensor([1.0])})
    with pytest.raises(FormatError, match="bias is a NoneType"):
        load_state_dict(layer, {"weight": Tensor([[1.0, 2.0]]), "bias": None})
