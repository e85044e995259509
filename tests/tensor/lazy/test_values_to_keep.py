"""Intermediate values that live tensors would recompute are stored."""

import numpy as np

from glassgrad import GlobalCounters, Tensor, TinyJit

ON_COMPILED_BACKEND = True


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def kernels_of(work):
    GlobalCounters.reset()
    work()
    return GlobalCounters.kernel_count


def test_a_contiguous_value_that_is_still_held_is_not_computed_twice():
    x = Tensor(numbers(32, 32)).realize()
    held = (x @ x).contiguous()
    first, second = held @ x, held.T @ x
    first.realize()
    assert kernels_of(second.realize) == 1
    expected = x.numpy() @ x.numpy()
    np.testing.assert_allclose(held.numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second.numpy(), expected.T @ x.numpy(), rtol=1e-3, atol=1e-3)


def test_a_contiguous_value_without_a_holder_gets_no_memory():
    x = Tensor(numbers(32, 32)).realize()
    first = (x @ x).contiguous() @ x
    first.realize()
    assert kernels_of(((x @ x).contiguous().T @ x).realize) == 2


def test_gradients_flow_through_a_value_that_was_kept_on_the_way():
    x = Tensor(numbers(4, 4), requires_grad=True)
    held = (x * 3).contiguous()
    held.sum().realize()
    (held * held).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 18 * x.numpy(), rtol=1e-6)


def test_a_matrix_times_a_vector_is_read_once_for_two_parts_of_the_result():
    w, x = Tensor(numbers(192, 256)).realize(), Tensor(numbers(256)).realize()
    left, right = (w @ x).reshape(2, 96)
    GlobalCounters.reset()
    left.realize()
    right.realize()
    assert GlobalCounters.global_mem < 1.5 * w.nbytes()
    expected = w.numpy() @ x.numpy()
    np.testing.assert_allclose(right.numpy(), expected[96:], rtol=1e-4, atol=1e-4)


def test_layers_that_write_to_a_cache_one_by_one_are_computed_once_each():
    width, layers = 64, 4
    weights = [Tensor(numbers(3 * width, width) / 8).realize() for _ in range(layers)]
    caches = [Tensor.zeros(width).contiguous().realize() for _ in range(layers)]

    @TinyJit
    def step(x):
        for weight, cache in zip(weights, caches, strict=True):
            q, k, v = (weight @ x).reshape(3, width)
            cache.assign(cache + k).realize()
            x = (q * cache + v).contiguous()
        return x.realize()

    x = Tensor(numbers(width)).realize()
    expected, sums = x.numpy(), [np.zeros(width, np.float32) for _ in range(layers)]
    for _ in range(3):
        expected = x.numpy()
        for number, weight in enumerate(weights):
            q, k, v = (weight.numpy() @ expected).reshape(3, width)
            sums[number] = sums[number] + k
            expected = q * sums[number] + v
        GlobalCounters.reset()
        got = step(x)
        assert GlobalCounters.global_mem < 1.5 * layers * weights[0].nbytes()
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-3)


def test_a_product_that_is_made_contiguous_is_stored_once():
    x, w = Tensor(numbers(1, 256)), Tensor(numbers(256, 256))
    product = x @ w
    GlobalCounters.reset()
    product.contiguous().realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_mem == 4 * (256 * 256 + 256 + 256)
