"""How many kernels well-known expressions become, at real sizes, with two cores."""

from __future__ import annotations

import pytest
from support.compiler.schedules import kernels, memory, planned, sizes

from glassgrad import Tensor, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.nn import Linear
from glassgrad.nn.optim import SGD


def one_hot(count: int, classes: int) -> Tensor:
    index = memory(count, dtype=dtypes.int32)
    return index.reshape(count, 1) == Tensor.arange(classes).reshape(1, classes)


def test_twenty_elementwise_ops_become_one_kernel() -> None:
    x = memory(256, 1024)
    for number in range(20):
        x = x + 1.5 if number % 2 else x * 0.5
    assert kernels(x) == 1


def test_a_matrix_product_with_bias_and_relu_becomes_one_kernel() -> None:
    assert kernels((memory(512, 256) @ memory(256, 384) + memory(384)).relu()) == 1


def test_softmax_becomes_one_kernel_that_stores_only_its_result() -> None:
    made = planned(memory(512, 1024).softmax())
    assert len(made.kernels) == 1
    assert len(made.buffers[0]) == 2


def test_log_softmax_becomes_one_kernel() -> None:
    assert kernels(memory(512, 1024).log_softmax()) == 1


def test_layernorm_with_scale_and_shift_becomes_one_kernel() -> None:
    made = planned(memory(512, 1024).layernorm() * memory(1024) + memory(1024))
    assert len(made.kernels) == 1
    assert len(made.buffers[0]) == 4


def test_rmsnorm_becomes_one_kernel() -> None:
    x = memory(512, 1024)
    assert kernels(x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()) == 1


def test_mean_and_variance_of_rows_become_one_kernel() -> None:
    x = memory(512, 1024)
    assert kernels(x.mean(1), x.var(1)) == 1


def test_several_reductions_of_the_same_rows_become_one_kernel() -> None:
    x = memory(512, 1024)
    assert kernels(x.sum(1), x.max(1), x.min(1), (x * x).sum(1)) == 1


def test_a_convolution_with_bias_and_relu_becomes_one_kernel() -> None:
    x, weight, bias = memory(8, 32, 28, 28), memory(64, 32, 3, 3), memory(64)
    made = planned(x.conv2d(weight, bias, padding=1).relu())
    assert len(made.kernels) == 1
    assert max(sizes(made)) == 8 * 64 * 28 * 28, "no unfolded image is stored"


def test_convolutions_that_are_added_have_a_kernel_each() -> None:
    x, y = memory(1, 64, 56, 56), memory(1, 128, 28, 28)
    added = y.conv2d(memory(128, 128, 3, 3), padding=1) + x.conv2d(memory(128, 64, 1, 1), stride=2)
    assert kernels(added.relu()) == 2


def test_max_pooling_becomes_one_kernel() -> None:
    assert kernels(memory(8, 32, 28, 28).max_pool2d()) == 1


def test_cross_entropy_stores_nothing_of_the_size_of_its_input() -> None:
    x, classes = memory(256, 5000), memory(256, dtype=dtypes.int32)
    made = planned(x.sparse_categorical_crossentropy(classes))
    assert len(made.kernels) <= 2
    written = [slots[0] for slots in made.buffers]
    assert all(node.shape in ((), (256,)) for node in written)


def test_attention_is_two_products_and_a_softmax_between_them() -> None:
    q, k, v = (memory(4, 8, 256, 64) for _ in range(3))
    assert kernels((q @ k.transpose(-2, -1) * 0.125).softmax() @ v) <= 3


def test_an_expensive_value_with_two_users_is_computed_once() -> None:
    powers = memory(1024, 1024).sin()
    made = planned(powers.sum(0), powers.sum(1))
    count = sum(node.op is Ops.SIN for kernel in made.kernels for node in kernel.body.toposort())
    assert count == 1
    assert len(made.kernels) == 2


def test_a_cheap_value_with_two_users_is_computed_twice_and_never_stored() -> None:
    more = memory(1024, 1024) + 1
    made = planned(more.sum(0), more.sum(1))
    written = [node for slots in made.buffers for node in slots if node.op is not Ops.BUFFER]
    assert {node.shape for node in written} == {(1024,)}


def test_two_results_of_one_expensive_value_come_from_one_kernel_with_two_outputs() -> None:
    powers = memory(1024, 1024).exp()
    made = planned(powers + 1, powers * 2)
    assert len(made.kernels) == 1
    assert len(made.kernels[0].body.src) == 2


def test_contiguous_gives_a_value_a_buffer_of_its_own() -> None:
    x = memory(512, 512)
    without, with_it = planned((x + 1) * 2), planned((x + 1).contiguous() * 2)
    assert len(without.buffers[0]) == 2
    assert sum(node.op is Ops.CONTIGUOUS for slots in with_it.buffers for node in slots) == 1


def test_contiguous_before_a_use_in_another_order_cuts_the_kernel() -> None:
    x = memory(512, 512)
    assert kernels((x + 1).flip(0) + x) == 1
    assert kernels((x + 1).contiguous().flip(0) + x) == 2


@pytest.mark.parametrize("how", ["where", "multiply", "matmul", "one_hot"])
def test_an_embedding_written_as_a_one_hot_sum_does_not_store_the_one_hot(how: str) -> None:
    table, hit = memory(5000, 128), one_hot(64, 5000)
    if how == "where":
        found = hit.reshape(64, 5000, 1).where(table, 0.0).sum(1)
    elif how == "multiply":
        found = (hit.cast(dtypes.float32).reshape(64, 5000, 1) * table).sum(1)
    elif how == "matmul":
        found = hit.cast(dtypes.float32) @ table
    else:
        found = memory(64, dtype=dtypes.int32).one_hot(5000).cast(dtypes.float32) @ table
    made = planned(found)
    assert len(made.kernels) == 1
    assert 64 * 5000 not in sizes(made)
    reduces = [n for n in made.kernels[0].body.toposort() if n.op is Ops.REDUCE]
    assert reduces == [], "a lookup needs no loop over the table"


def test_a_lookup_at_computed_indices_does_not_store_the_one_hot() -> None:
    places = memory(64, dtype=dtypes.int32) * 3 % 5000 + memory(64, dtype=dtypes.int32)
    hit = places.reshape(64, 1) == Tensor.arange(5000).reshape(1, 5000)
    made = planned(hit.reshape(64, 5000, 1).where(memory(5000, 128), 0.0).sum(1))
    assert 64 * 5000 not in sizes(made)


def test_indexing_with_a_tensor_becomes_one_kernel() -> None:
    made = planned(memory(5000, 128)[memory(64, dtype=dtypes.int32)])
    assert len(made.kernels) == 1
    assert sizes(made) == {64 * 128, 64, 5000 * 128, 1}  # 1: where bad indices are reported


def test_arange_is_never_stored() -> None:
    x = memory(512, 512)
    made = planned(x + Tensor.arange(512) * 2)
    assert len(made.kernels) == 1
    assert len(made.buffers[0]) == 2


def test_a_whole_sum_is_shared_among_cores_in_two_kernels() -> None:
    made = planned(memory(512, 1024).sum())
    assert [slots[0].shape for slots in made.buffers] == [(512,), ()]


def test_a_short_sum_is_one_kernel() -> None:
    assert kernels(memory(32, 32).relu().sum()) == 1


class Perceptron:
    def __init__(self) -> None:
        self.first, self.second = Linear(784, 256), Linear(256, 10)
        self.parameters = [self.first.weight, self.first.bias, self.second.weight, self.second.bias]

    def loss(self, x: Tensor, classes: Tensor) -> Tensor:
        return self.second(self.first(x).relu()).sparse_categorical_crossentropy(classes)


def test_a_training_step_of_a_perceptron_takes_at_most_ten_kernels() -> None:
    model = Perceptron()
    optimizer = SGD(model.parameters, lr=0.01)
    loss = model.loss(memory(128, 784), memory(128, dtype=dtypes.int32))
    loss.backward()
    made = planned(loss, *optimizer.schedule_step())
    products = [k for k in made.kernels if any(n.op is Ops.REDUCE for n in k.body.toposort())]
    assert 5 <= len(made.kernels) <= 10
    assert len(products) >= 5, "two products forward, three backward"


def test_equal_layers_give_identical_kernels() -> None:
    x = memory(256, 512)
    for _ in range(6):
        x = (x @ memory(512, 512) + memory(512)).relu().layernorm().contiguous()
    made = planned(x)
    assert len(set(made.kernels)) == len(made.kernels) // 6


def test_the_same_graph_gives_the_same_kernels_again() -> None:
    def build() -> Tensor:
        return (memory(128, 64) @ memory(64, 32)).softmax().sum(0)

    assert planned(build()).kernels == planned(build()).kernels
