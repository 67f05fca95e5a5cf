"""Single calls that are raced, as code that holds for gradcli and torch alike.

`T` is the library, `F` its functions of layers; `Inputs` says what the other names stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SIDES = (32, 128, 512, 1024)  # n: most inputs have n x n numbers, 1,024 to 1,048,576
DTYPES = ("float32", "bfloat16")

# Timed forward, and again with backward.
WITH_GRADIENT: dict[str, tuple[str, ...]] = {
    "elementwise": (
        *("x + y", "x + v", "x - 1.5", "x * y", "x * c", "x / p", "-x", "x.abs()", "x ** 2"),
        *("p ** 2.5", "p ** y", "p.sqrt()", "p.rsqrt()", "x.exp()", "p.log()", "p.log1p()"),
        *("x.sin()", "x.cos()", "x.tan()", "x.tanh()", "x.sigmoid()", "x.erf()", "x.atan()"),
        *("x.clamp(-0.5, 0.5)", "T.maximum(x, y)", "T.where(m, x, y)", "x.masked_fill(m, 0.0)"),
        *("T.lerp(x, y, 0.3)", "F.relu(x)", "F.leaky_relu(x)", "F.elu(x)", "F.silu(x)"),
        *("F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.softplus(x)", "F.hardswish(x)"),
    ),
    "reductions": (
        *("x.sum()", "x.sum(0)", "x.sum(1)", "x.mean()", "x.mean(0)", "x.mean(1)", "x.var(1)"),
        *("x.std(0)", "u.prod(1)", "x.max()", "x.max(1)", "x.max(0)", "x.amax(1)", "x.amin(0)"),
        *("T.logsumexp(x, 1)", "T.logsumexp(x, 0)", "x.norm()", "x.norm(dim=1)"),
        *("x.cumsum(1)", "x.cumsum(0)", "u.cumprod(1)"),
    ),
    "rows": (
        *("F.softmax(x, 1)", "F.softmax(x, 0)", "F.log_softmax(x, 1)", "F.log_softmax(x, 0)"),
        *("F.layer_norm(x, (n,))", "F.layer_norm(x, (n,), v, v)", "F.rms_norm(x, (n,))"),
        *("F.normalize(x, dim=1)", "F.glu(x)"),
    ),
    "shapes": (
        *("x.t().contiguous()", "x.t() + y", "x.flip(0)", "x.flip(1)", "T.roll(x, 3, 0)"),
        *("T.roll(x, 3, 1)", "F.pad(x, (2, 3, 1, 2))", "T.cat([x, y], 0)", "T.cat([x, y], 1)"),
        *("T.stack([x, y], 0)", "T.stack([x, y], 2)", "x.repeat(2, 1)", "v.expand(n, n) + x"),
        *("picture.permute(0, 2, 3, 1).contiguous()", "x[1:, ::2].contiguous()", "x.clone()"),
        *("T.tril(x)", "T.diagonal(x) * 2.0", "T.chunk(x, 4, 1)[1] * 2.0"),
    ),
    "indices": (
        *("T.gather(x, 1, i)", "T.gather(x, 0, i)", "x[r]", "x[:, r]", "T.index_select(x, 0, r)"),
        *("x[r, r]", "x[m]", "x.scatter_add(1, i, y)", "x.index_add(0, r, y)"),
        *("x.take_along_dim(i, 1)", "F.embedding(r, x)", "T.sort(x, 1)", "T.topk(x, 8, 1)"),
    ),
    "products": (
        *("x @ y", "x @ y.t()", "x.t() @ y", "x @ v", "v @ x", "T.outer(v, v)", "v @ v"),
        *("batch @ batch", "F.linear(x, y, v)", "T.einsum('ij,kj->ik', x, y)"),
    ),
    "pictures": (
        *("F.conv2d(picture, kernel3, padding=1)", "F.conv2d(picture, kernel1)"),
        *("F.conv2d(picture, kernel3, padding=1, stride=2)",),
        *("F.conv2d(picture, depth3, padding=1, groups=channels)", "F.max_pool2d(picture, 2)"),
        *("F.avg_pool2d(picture, 2)", "F.adaptive_avg_pool2d(picture, 1)", "picture.mean((2, 3))"),
        *("F.batch_norm(picture, None, None, scale, shift, training=True)",),
        *("F.group_norm(picture, 2)", "F.interpolate(picture, scale_factor=2)"),
        *("picture + shift.reshape(1, channels, 1, 1)",),
    ),
    "losses": (
        *("F.cross_entropy(x, r)", "F.cross_entropy(x, r, label_smoothing=0.1)"),
        *("F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)"),
        *("F.binary_cross_entropy_with_logits(x, u)", "F.nll_loss(x, r)"),
        *("F.kl_div(x, u, reduction='batchmean')",),
    ),
    "attention": (
        *("F.scaled_dot_product_attention(q, q, q)",),
        *("F.scaled_dot_product_attention(q, q, q, is_causal=True)",),
    ),
}
# Timed forward alone: integers, booleans, positions, fresh numbers, and what writes in place.
WITHOUT_GRADIENT: dict[str, tuple[str, ...]] = {
    "without gradient": (
        *("x < y", "x == y", "~m", "m & m", "x.isnan()", "x.floor()", "x.sign()", "i + i"),
        *("i // 3", "x.to(T.float64)", "i.to(T.float32)", "x.argmax(1)", "x.argmax(0)"),
        *("x.argmax()", "m.any()", "m.sum()", "m.all(1)", "T.nonzero(m)", "T.argsort(x, 1)"),
        *("T.zeros(n, n)", "T.ones(n, n)", "T.arange(n * n)", "T.rand(n, n)", "T.randn(n, n)"),
        *("T.eye(n)", "T.randperm(n * n)", "F.one_hot(r, n)", "z.zero_()", "z.add_(y)"),
        *("z.mul_(c)", "z.copy_(y)", "z.copy_(y.t())", "z.index_copy_(0, s, y)"),
    ),
}
OPS = {
    code: family
    for families in (WITH_GRADIENT, WITHOUT_GRADIENT)
    for family, codes in families.items()
    for code in codes
}
HAVE_GRADIENT = frozenset(code for codes in WITH_GRADIENT.values() for code in codes)
# By n: batch, channels, height and width of the pictures; heads, steps and width of attention.
PICTURES = {32: (1, 4, 16, 16), 128: (4, 4, 32, 32), 512: (4, 16, 64, 64), 1024: (16, 16, 64, 64)}
HEADS = {32: (2, 16, 32), 128: (4, 64, 64), 512: (16, 256, 64), 1024: (32, 512, 64)}


class Inputs:
    """What the code of a case may name, made when it does; each library draws its own numbers."""

    def __init__(self, library: Any, functional: Any, side: int, dtype: str) -> None:
        library.manual_seed(1)
        self._library, self._side, self._dtype = library, side, getattr(library, dtype)
        n, channels = side, PICTURES[side][1]
        self._plain = {"T": library, "F": functional, "n": n, "c": 0.75, "channels": channels}
        self._uniform: dict[str, tuple[tuple[int, ...], float, float]] = {
            **dict.fromkeys(("x", "y", "z"), ((n, n), -1.0, 1.0)),  # z is written on
            "u": ((n, n), 0.5, 1.5),
            "p": ((n, n), 0.1, 2.1),
            "v": ((n,), -1.0, 1.0),
            "batch": ((4, n // 2, n // 2), -1.0, 1.0),
            "picture": (PICTURES[n], -1.0, 1.0),
            **{f"kernel{k}": ((channels, channels, k, k), -1.0, 1.0) for k in (1, 3)},
            "depth3": ((channels, 1, 3, 3), -1.0, 1.0),
            "shift": ((channels,), -1.0, 1.0),
            "scale": ((channels,), 0.5, 1.5),
            "q": ((1, *HEADS[n]), -1.0, 1.0),
        }
        self._makers: dict[str, Callable[[], Any]] = {
            "m": lambda: library.rand(n, n) < 0.5,
            "i": lambda: library.randint(0, n, (n, n)),
            "r": lambda: library.randint(0, n, (n,)),
            "s": lambda: library.arange(n),
        }

    def of(self, code: str) -> dict[str, Any]:
        """All that the code names; names of methods stand for nothing."""
        pairs = ((name, self._make(name)) for name in compile(code, code, "eval").co_names)
        return {name: value for name, value in pairs if value is not None}

    def _make(self, name: str) -> Any:
        if name in self._uniform:
            shape, low, high = self._uniform[name]
            return (self._library.rand(*shape) * (high - low) + low).to(self._dtype)
        make = self._makers.get(name)
        return self._plain.get(name) if make is None else make()


def forward(code: str, there: dict[str, Any]) -> Callable[[], Any]:
    """The case over what it names; its inputs ask for no gradient."""
    compiled = compile(code, code, "eval")
    return lambda: eval(compiled, there)


def backward(code: str, there: dict[str, Any]) -> Callable[[], Any]:
    """The case and its gradients, of all floating-point tensors that it names."""
    compiled = compile(code, code, "eval")
    tensors = [value for value in there.values() if hasattr(value, "requires_grad_")]
    leaves = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
    gradient = _first(eval(compiled, there)).detach().clone()

    def step() -> list[Any]:
        for leaf in leaves:
            leaf.grad = None
        _first(eval(compiled, there)).backward(gradient)
        return [leaf.grad for leaf in leaves]

    return step


WAYS = {"forward": forward, "backward": backward}


def _first(result: Any) -> Any:
    """Values of what has indices beside them."""
    return result[0] if isinstance(result, tuple) else result
