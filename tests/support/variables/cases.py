"""Calls of every public method and creation function with sizes and numbers of a variable.

A call is Python text over these names, where n is a whole number from 1 to 12:

    x, y, p   (n, 6) floats; p is between 0 and 1        v     (n,) floats
    i         (n, 6) ints from 0 to 5                    b     (n, 6) bools
    w         (6, n) floats                              k     (n,) ints from 0 to 5
    images    (n, 2, 6, 6) floats                        tall  (2, 2, n, 6) floats
    whole     (12, 6) floats, of which x is a part       line  (12,) floats
    zero      0, from n - n                              T     the Tensor class
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import Tensor, dtypes

LARGEST = 12
RNG = np.random.default_rng(7)


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, np.float32)


DATA: dict[str, Any] = {
    "x": _floats(LARGEST, 6),
    "y": _floats(LARGEST, 6),
    "p": RNG.uniform(0.1, 0.9, (LARGEST, 6)).astype(np.float32),
    "v": _floats(LARGEST),
    "w": _floats(6, LARGEST),
    "i": RNG.integers(0, 6, (LARGEST, 6)).astype(np.int32),
    "b": RNG.integers(0, 2, (LARGEST, 6)).astype(bool),
    "k": RNG.integers(0, 6, LARGEST).astype(np.int32),
    "images": _floats(LARGEST, 2, 6, 6),
    "tall": _floats(2, 2, LARGEST, 6),
    "whole": _floats(LARGEST, 6),
    "line": _floats(LARGEST),
}


def names(tensors: list[Tensor], n: Any) -> dict[str, Any]:
    """What the text of a call can use."""
    given = dict(zip(DATA, tensors, strict=True))
    for name in ("x", "y", "p", "v", "i", "b", "k", "images"):
        given[name] = given[name][:n]
    given["w"], given["tall"] = given["w"][:, :n], given["tall"][:, :, :n]
    return given | {"n": n, "T": Tensor, "np": np, "dtypes": dtypes}


UNARY = """
    abs acosh asinh atan bfloat16 bool ceil celu contiguous contiguous_backward cos cosh cpu
    detach double elu erf exp exp2 float floor gelu half hardsigmoid hardswish hardtanh isfinite
    isinf isnan int leaky_relu logical_not logsigmoid long mish neg quick_gelu ravel reciprocal
    relu relu6 round selu short sigmoid sign silu sin sinh softmin softplus softsign square
    swish tan tanh trunc any all amax amin cummin transpose t zeros_like ones_like numel
    nelement dim element_size nbytes is_floating_point clone tolist numpy data std_mean var_mean
    requires_grad_ realize
"""
ON_PROBABILITIES = "acos asin atanh log log2 log10 rsqrt sqrt"
CALLS = """
log_softmax: x.log_softmax(0) ; w.log_softmax(-1)
softmax: x.softmax(0) ; x.softmax(1) ; w.softmax(-1)
flatten: x.flatten() + 1 ; images.flatten(1) ; images.flatten(0, 1) ; w.flatten() * 2
sum: x.sum() ; x.sum(0) ; x.sum(1) ; x.sum(axis=(0, 1), keepdim=True) ; i.sum() ; b.sum() ;
    images.sum((0, 2))
mean: x.mean() ; x.mean(0) ; x.mean(1, keepdim=True) ; i.mean()
max: x.max(0) ; i.max() ; whole[:n - 1].max(0) ; b.max()
min: x.min(0) ; x.min(1)
prod: p.prod(0) ; p.prod(1)
argmax: x.argmax(0) ; x.argmax() ; x.argmax(1)
argmin: x.argmin(0) ; w.argmin(1)
std: x.std(0, correction=0) ; x.std(1)
var: x.var(0) ; x.var() ; x.var(0, correction=0) ; x.var(1) ; x.var(0, correction=n)
logsumexp: x.logsumexp(0) ; x.logsumexp(1)
norm: x.norm(dim=0) ; x.norm(1) ; x.norm(float('inf')) ; x.norm(n)
normalize: x.normalize(dim=0) ; x.normalize(dim=1)
layernorm: x.layernorm() ; x.layernorm(0) ; images.layernorm((1, 2, 3))
cumsum: x.cumsum(0) ; x.cumsum(1) ; w.cumsum(1) ; v.cumsum(0)
cummax: x.cummax(0)
logcumsumexp: x.logcumsumexp(0) ; x.logcumsumexp(1)
tril: x.tril() ; whole.tril(n) ; x.tril(n - 3)
triu: x.triu() ; whole.triu(n) ; (x @ x.T).triu(1)
size: x.size(1) ; x.size(0) + 1 ; list(x.size()) ; x.size(0)
dropout: x.dropout(0.5)
argsort: x.argsort(0)
sort: x.sort(0) ; x.sort(1) ; v.sort(descending=True)
nonzero: b.nonzero() ; b.nonzero(size=3) ; k.nonzero()
unbind: x.unbind(1) ; x.unbind(0)
T: x.T ; x.T + 1
mT: x.mT * 2
shape: x.reshape(x.shape[1], x.shape[0]) ; x.reshape(x.shape)
ndim: x * x.ndim
dtype: x.cast(x.dtype)
device: x.to(x.device)
uop: T(x.uop)
lazydata: T(x.lazydata)
max_numel: whole.max_numel()
max_shape: list(whole.max_shape)
add: x.add(y) ; x + n ; n + x ; i + n ; x.add(n * 2 - 1) ; x + T(n)
sub: x.sub(y) ; x - n ; n - x ; n - i
mul: x.mul(y) ; x * n ; n * x ; i * n ; b * n ; x * (n // 2) ; x * (n % 5)
div: x.div(y) ; x / n ; n / p ; i / n ; x.div(n, rounding_mode='floor')
pow: p.pow(y) ; p ** n ; n ** p ; i ** (n % 4) ; whole ** n
floor_divide: x.floor_divide(n) ; i // n ; n // (i + 1)
mod: x.mod(n) ; i % n ; n % (i + 1)
remainder: i.remainder(n)
fmod: x.fmod(n)
maximum: x.maximum(y) ; x.maximum(n) ; i.maximum(n - 3)
minimum: x.minimum(y) ; x.minimum(n)
bitwise_and: i.bitwise_and(n) ; i & i
bitwise_or: i.bitwise_or(n)
bitwise_xor: i.bitwise_xor(n) ; n ^ i
bitwise_not: i.bitwise_not() ; ~b
lshift: i.lshift(2) ; i << n
rshift: i.rshift(1) ; i >> n
eq: i.eq(n) ; x.eq(y) ; n == i
ne: i.ne(n)
lt: i.lt(n) ; n < i ; whole < n
le: i.le(n)
gt: i.gt(n)
ge: i.ge(n) ; n >= i
where: b.where(x, y) ; b.where(n, x) ; b.where(x, n) ; b.where(n, 0) ; b.where(n, n)
clamp: x.clamp(-1, 1) ; i.clamp(1, n)
clip: x.clip(-1, n) ; i.clip(n - 3, n) ; line.clip(0, n)
copysign: x.copysign(y) ; x.copysign(n)
lerp: x.lerp(y, 0.3) ; x.lerp(y, n)
logaddexp: x.logaddexp(y) ; x.logaddexp(n)
isclose: x.isclose(y) ; x.isclose(n)
allclose: x.allclose(x)
usum: x.usum(y, y) ; x.usum(n)
uprod: x.uprod(y, n)
ufix: x.ufix(n)
const: T.const(n) ; T.const(n, dtypes.float32)
const_like: x.const_like(n) ; x.const_like(3)
cast: x.cast(dtypes.int32)
type_as: x.type_as(i)
bitcast: x.bitcast(dtypes.int32) ; x.bitcast(dtypes.uint8)
masked_fill: x.masked_fill(b, 2.0) ; x.masked_fill(b, n)
threefry: i.cast(dtypes.uint64).threefry(i.cast(dtypes.uint64))
reshape: x.reshape(-1) ; x.reshape(n * 6) ; x.reshape(n, 2, 3) ; x.reshape(n, -1) ;
    x.reshape(1, n, 6) ; x.reshape(6, n) ; x.reshape(n, 7) ; w.reshape(n, 6) ;
    images.reshape(n, 2, 36) ; images.reshape(n * 2, 6, 6)
view: x.view(n, 3, 2) ; x.view(-1, 6)
view_as: x.view_as(y)
reshape_as: x.reshape_as(y)
unflatten: x.unflatten(1, (2, 3)) ; x.unflatten(0, (n, 1))
permute: x.permute(1, 0) ; images.permute(1, 0, 3, 2)
moveaxis: images.moveaxis(0, 2)
movedim: images.movedim(0, 3)
swapaxes: x.swapaxes(0, 1)
swapdims: x.swapdims(0, 1)
squeeze: x.unsqueeze(1).squeeze(1) ; x.squeeze() ; x.squeeze(0) ; x.squeeze(1)
unsqueeze: x.unsqueeze(0) ; x.unsqueeze(-1) * 2
expand: v.unsqueeze(1).expand(n, 4) ; x.unsqueeze(0).expand(3, -1, -1) ; x.expand(n, 6) ;
    whole[:1].expand(n, 6) ; whole[0].expand(n, 6) ; x.expand(5, 6)
expand_as: v.unsqueeze(1).expand_as(x)
broadcast_to: v.broadcast_to(3, n)
flip: x.flip(0) ; x.flip((0, 1))
shrink: whole.shrink(((0, n), None)) ; x.shrink((None, (1, 3))) ;
    whole.shrink(((n - 1, n), None)) ; whole.shrink(((n, n + 3), None)) ;
    x.shrink(((0, n - 1), None)) ; x.shrink(((0, 4), None))
shrink_to: whole.shrink_to(n, 3) ; x.shrink_to(n, None) ; x.shrink_to(3, 6)
pad: x.pad(((0, 12 - n), None)) ; x.pad(((1, n), (0, 2))) ; x.pad((1, 1)) ; x.pad((n, 0)) ;
    v.pad((0, 12 - n), value=7) ; v.pad((0, 2), value=n) ; v.pad((0, -1)) ; v.pad((0, 3 - n)) ;
    whole.pad((0, 0, 0, n - 12)) ; x.pad(((0, 12 - n), None)).contiguous() ;
    x.pad((0, 0, 1, 0), mode='reflect') ; x.pad((0, 0, 1, 1), mode='replicate') ;
    x.pad((0, 0, 1, 0), mode='circular') ; x.pad((2, 2), mode='reflect') ;
    line.pad((n, 0), mode='circular') ; line.pad((n, 0), mode='replicate')
pad_to: x.pad_to(12, 6) ; x.pad_to(12, None) ; whole.pad_to(n + 12, 6) ; x.pad_to(4, 6)
cat: x.cat(y) ; x.cat(y, dim=1) ; x.cat(whole) ; v.cat(line, v) ; T.cat(x, x, y) ;
    x.cat(whole, dim=1)
stack: x.stack(y) ; T.stack(x, y, dim=1) ; x.stack(whole)
repeat: x.repeat(2, 1) ; x.repeat(1, 2) ; line.repeat(n) ; v.repeat(3) ; x.repeat(2, 1, 1)
tile: x.tile(2, 1) ; line.tile(n)
repeat_interleave: v.repeat_interleave(2) ; line.repeat_interleave(n) ;
    x.repeat_interleave(3, 1) ; x.repeat_interleave(2, 0)
split: x.split(2) ; x.split(2, 1) ; x.split([n - 1, 1]) ; line.split([n, 12 - n]) ;
    line.split(n) ; x.split([1, 2])
chunk: x.chunk(2) ; x.chunk(3, 1) ; line.chunk(n)
unfold: x.unfold(1, 2, 1) ; x.unfold(0, 1, 1) ; x.unfold(0, 2, 2) ; line.unfold(0, n, 1)
roll: x.roll(1, 0) ; x.roll(2) ; line.roll(n) ; x.roll(n, 1) ; x.roll((1, 2), (0, 1))
diagonal: x.diagonal() ; (x @ x.T).diagonal() ; whole.diagonal(n - 6) ; w.diagonal(1)
diag: v.diag() ; x.diag()
meshgrid: v.meshgrid(v) ; v.meshgrid(line, indexing='xy')
rearrange: x.rearrange('a b -> b a') ; images.rearrange('a b c d -> a (b c) d') ;
    x.rearrange('a (b c) -> (a b) c', b=2)
narrow: x.narrow(1, 2, 3) ; whole.narrow(0, n - 1, 1) ; x.narrow(0, 0, n) ; x.narrow(0, 0, 3) ;
    whole.narrow(0, 2, n)
select: x.select(0, 0) ; whole.select(0, n - 1) ; x.select(0, n - 1) ; x.select(0, 4) ;
    x.select(0, -1)
index_select: x.index_select(0, k.cast(dtypes.int32) * 0) ; whole.index_select(0, k) ;
    x.index_select(1, k)
full: T.full((n, 2), 3.5) ; T.full((2,), n) ; T.full((n,), n) ; T.full(3, n, dtype='float32') ;
    T.full((n - 3,), 1)
full_like: x.full_like(2) ; whole.full_like(n)
zeros: T.zeros(n) ; T.zeros(n, 3) ; T.zeros(2, n).contiguous() ; T.zeros((n - 1, 2))
ones: T.ones(n) ; T.ones(3, n + 1, dtype='int32')
eye: T.eye(n) ; T.eye(n, 4) ; T.eye(3, n)
arange: T.arange(n) ; T.arange(3, n + 3) ; T.arange(n, 12 + n) ; T.arange(0, n, 2) ;
    T.arange(n, 0, -1) ; T.arange(0, 12, n) ; T.arange(0.0, n) ; T.arange(0, n, 0.5) ;
    T.arange(n, dtype='float32') ; T.arange(n) < n - 2 ; T.arange(n - 3) ; T.arange(5, n)
linspace: T.linspace(0, 1, n) ; T.linspace(0, n, 5) ; T.linspace(n, 2 * n, 4) ;
    T.linspace(0, n, n, dtype='int32')
empty: T.empty(n, 3).zeros_like()
empty_like: x.empty_like().zeros_like()
rand: T.rand(n) ; T.rand(3, n)
rand_like: x.rand_like()
randn: T.randn(n, 3)
randn_like: x.randn_like()
randint: T.randint(n, 3) ; T.randint(5, low=0, high=n) ; T.randint(4, low=n, high=20)
randperm: T.randperm(n)
uniform: T.uniform(n, low=2, high=3) ; T.uniform(4, low=0, high=n)
normal: T.normal(n, mean=2) ; T.normal(4, mean=n, std=n)
scaled_uniform: T.scaled_uniform(n, 4)
glorot_uniform: T.glorot_uniform(n, 4)
kaiming_uniform: T.kaiming_uniform(n, 4)
kaiming_normal: T.kaiming_normal(n, 4)
random_bits: T.random_bits(T([1, 2], dtype='uint32'), T([0], dtype='uint32'), n)
multinomial: p.multinomial(2, replacement=True) ; p.multinomial(2) ;
    p[0].multinomial(n, replacement=True)
cumprod: p.cumprod(0) ; p.cumprod(1)
topk: x.topk(2, 1) ; x.topk(1, 0) ; line.topk(n) ; x.topk(3, 0)
one_hot: k.one_hot(6) ; k.one_hot(n + 6) ; i.one_hot(n)
dot: x.dot(w) ; v.dot(v) ; w.dot(x)
matmul: x.matmul(w) ; whole.T @ whole[:, :3] ; x @ whole.T ; w @ y ; tall @ whole[:6].T[:6]
mm: x.mm(w)
mv: w.mv(v) ; x.mv(line[:6])
bmm: images[:, 0].bmm(images[:, 1])
addmm: (x @ w).addmm(x, w)
outer: v.outer(v) ; v.outer(line)
linear: x.linear(whole[:6].T[:6]) ; v.linear(x)
einsum: T.einsum('ab,cb->ac', x, y) ; T.einsum('ab,ab->', x, y) ; T.einsum('ab,ba->a', x, w)
scaled_dot_product_attention: tall.scaled_dot_product_attention(tall, tall) ;
    tall.scaled_dot_product_attention(tall, tall, is_causal=True) ;
    tall[:, :, :1].scaled_dot_product_attention(tall, tall) ;
    tall.scaled_dot_product_attention(tall, tall, attn_mask=T.ones(n, n).tril() > 0) ;
    tall.scaled_dot_product_attention(tall[:, :1], tall[:, :1], enable_gqa=True) ;
    tall.transpose(2, 3).scaled_dot_product_attention(tall.transpose(2, 3), tall.transpose(2, 3))
conv2d: images.conv2d(images[:1, :, :3, :3]) ; tall.conv2d(tall[:, :, :1, :3]) ;
    images.conv2d(images[:1, :, :3, :3], padding=1, stride=2) ;
    tall.conv2d(T.ones(2, 2, 3, 3), padding=1)
conv_transpose2d: images.conv_transpose2d(T.ones(2, 3, 2, 2)) ;
    images.conv_transpose2d(T.ones(2, 3, 2, 2), stride=2) ;
    tall.conv_transpose2d(T.ones(2, 3, 2, 2), stride=2)
max_pool2d: images.max_pool2d() ; images.max_pool2d(ceil_mode=True) ;
    images.max_pool2d(return_indices=True) ; tall.max_pool2d((1, 2)) ; tall.max_pool2d()
avg_pool2d: images.avg_pool2d() ; tall.avg_pool2d((1, 2)) ; tall.avg_pool2d(3, padding=1)
max_unpool2d: images.max_pool2d().max_unpool2d(images.max_pool2d(return_indices=True)[1])
interpolate: images.interpolate((9, 9)) ; images.interpolate((3, 3), mode='nearest') ;
    x.interpolate((4, 6)) ; images[0].interpolate((n, 4))
batchnorm: images.batchnorm(line[:2], line[2:4], line[4:6], line[6:8])
sequential: x.sequential([T.relu, lambda t: t + 1])
newton_schulz: x.newton_schulz(2, (3.4, -4.7, 2.0))
qr: x.qr() ; images[:, 0].qr()
svd: x.svd()[1] ; images[:, 0].svd()[1]
gather: x.gather(1, i) ; x.gather(0, i * 0) ; whole.gather(0, i) ; x.gather(1, i[:, :2]) ;
    x.gather(0, i)
scatter: x.scatter(1, i, y) ; whole.scatter(0, i, x) ; x.scatter(1, i, 2.0) ;
    x.scatter(0, i * 0, y)
scatter_add: x.scatter_add(1, i, y) ; whole.scatter_add(0, i, x)
scatter_reduce: x.scatter_reduce(1, i, y, 'sum') ; whole.scatter_reduce(0, i, x, 'amax') ;
    x.scatter_reduce(1, i, y, 'mean')
masked_select: x.masked_select(b) ; x.masked_select(b, size=4) ;
    whole.masked_select(whole > 0, size=n)
cross_entropy: x.cross_entropy(k) ; x.cross_entropy(k, reduction='none') ;
    x.cross_entropy(k, label_smoothing=0.1) ; x.cross_entropy(k, ignore_index=2) ;
    w.T.cross_entropy(p)
nll_loss: x.log_softmax().nll_loss(k) ; x.log_softmax().nll_loss(k, reduction='sum')
sparse_categorical_crossentropy: x.sparse_categorical_crossentropy(k) ;
    x.sparse_categorical_crossentropy(k, label_smoothing=0.1)
binary_crossentropy: p.binary_crossentropy(b.float())
binary_crossentropy_logits: x.binary_crossentropy_logits(b.float()) ;
    x.binary_crossentropy_logits(b.float(), reduction='sum')
gradient: (x * y).sum().gradient(x) ; x.sort(0)[0].square()[0].sum().gradient(x) ;
    (x.roll(1, 0) * x).sum().gradient(x) ; x.interpolate((4, 6)).square().sum().gradient(whole) ;
    x[k * 0].square().sum().gradient(x) ; tall.avg_pool2d((1, 2)).square().sum().gradient(tall) ;
    x.topk(1, 0)[0].sum().gradient(x) ; x.mean().gradient(whole) ;
    x.softmax(0).square().sum().gradient(x) ; (x @ w).square().sum().gradient(w) ;
    x.pad(((0, 12 - n), None)).square().sum().gradient(x) ; x.var(0).sum().gradient(x) ;
    x.max(0).sum().gradient(x) ; x.cumsum(0).square().sum().gradient(x) ;
    x.cross_entropy(k).gradient(x) ; x.gather(1, i).square().sum().gradient(x) ;
    images.max_pool2d().square().sum().gradient(images) ; x.cat(y).square().sum().gradient(y) ;
    tall.scaled_dot_product_attention(tall, tall, is_causal=True).square().sum().gradient(tall) ;
    images.conv2d(images[:1, :, :3, :3]).square().sum().gradient(images) ;
    x.layernorm(0).square().sum().gradient(x) ; (p ** n).sum().gradient(p)
__getitem__: x[0] ; x[-1] ; x[1:] ; x[:-1] ; x[:, 1:3] ; x[::2] ; x[::-1] ; x[:, ::2] ; x[None] ;
    x[..., 0] ; whole[n - 1] ; whole[n] ; whole[n:] ; whole[:n] ; whole[n - 1:n] ;
    whole[n:n + 3] ; whole[-n:] ; whole[-n] ; line[n - 1:n + 1] ; whole[:n, :n] ; whole[1:n] ;
    whole[n:2 * n] ; whole[0:n:2] ; whole[n:3] ; whole[:20 - n] ; x[[0, 0]] ; x[:, [5, 0, 2]] ;
    x[k * 0] ; whole[k] ; x[k] ; x[b] ; x[v > 0] ; whole[T.arange(n)] ; x[:2] ; x[2] ;
    x[T([0])] ; whole[k, k] ; x[0:n] ; x[n - 1] ; x[n]
__matmul__: x @ y.T
__len__: len(x)
__iter__: [row for row in x]
item: x.sum().item() ; x[n - 1, 0].item() ; x[:1, :1].item() ; x[0:1, 0].item()
"""

# Calls on t, (12, 6) floats in memory, which are compared by what t is after that.
IN_PLACE_CALLS = """
assign: t[:n].assign(x) ; t[n - 1:n].assign(y[:1]) ; t[n:n + 1].assign(y[:1])
__setitem__: t.__setitem__(n - 1, 7.0) ; t.__setitem__(slice(0, n), x) ;
    t.__setitem__(slice(0, n), n) ; t.__setitem__((slice(None), 2), n) ; t.__setitem__(n, 7.0) ;
    t.__setitem__(k, x) ; t.__setitem__(slice(n - 1, n + 2), 3.0) ; t.__setitem__(0, n)
add_: t.add_(n) ; t[:n].add_(x)
sub_: t.sub_(n)
mul_: t.mul_(n) ; t[:n].mul_(2)
div_: t.div_(n)
clamp_: t.clamp_(0, n)
copy_: t[:n].copy_(x)
fill_: t.fill_(n) ; t[:n].fill_(2)
zero_: t[:n].zero_()
__iadd__: t.__iadd__(n) ; t[:n].__iadd__(x)
__imul__: t.__imul__(n)
__ipow__: t.__ipow__(n)
replace: t.replace(t * n) ; t.replace(x)
"""

# What has no result to compare, or takes no tensor whose size could be decided at launch.
PLAIN = """
    backward from_blob from_dlpack from_memory from_url grad is_param is_param_ kernelize
    linear_with_vars manual_seed requires_grad schedule schedule_linear schedule_with_vars test
    to to_ train
"""
NOT_CALLED = frozenset(PLAIN.split())


def _table(text: str) -> dict[str, list[str]]:
    """`name: call ; call`, which may go on in indented lines."""
    lines = text.strip().replace("\n    ", " ").splitlines()
    pairs = [line.split(": ", 1) for line in lines]
    return {name: calls.split(" ; ") for name, calls in pairs}


CASES = {name: [f"x.{name}()"] for name in UNARY.split()}
CASES |= {name: [f"p.{name}()"] for name in ON_PROBABILITIES.split()}
CASES |= _table(CALLS)
IN_PLACE = _table(IN_PLACE_CALLS)
