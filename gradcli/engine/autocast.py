"""autocast: inside a `with` block products take bfloat16, and what would lose by it float32.

The rules are torch.autocast's: which op belongs to which stands in the three lists below. All other
ops take what they get and promote. float64 and whole numbers are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import field
from functools import wraps
from typing import Any, TypeVar, cast

from gradcli.dataclass import dataclass
from gradcli.engine import graph, table
from gradcli.engine.argument import checked_as
from gradcli.engine.array import Array
from gradcli.engine.block import Block
from gradcli.engine.dtype import DType, bfloat16, float32
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError

F = TypeVar("F", bound=Callable[..., Any])

# Many products and few sums of what they give: they run on inputs rounded to bfloat16.
_PRODUCTS = """
addmm baddbmm bmm conv1d conv2d conv_transpose1d conv_transpose2d einsum gru_steps linear lstm_steps
matmul mm mv prelu rnn_steps scaled_dot_product_attention
"""
# Sums of many numbers, wide ranges, and losses: they run in float32.
_FLOAT32 = """
acos asin binary_cross_entropy binary_cross_entropy_with_logits cosh cosine_embedding_loss
cosine_similarity cross_entropy cumprod cumsum exp expm1 group_norm hinge_embedding_loss huber_loss
interpolate kl_div l1_loss layer_norm log log10 log1p log2 log_softmax logsumexp margin_ranking_loss
mse_loss multi_margin_loss multilabel_margin_loss nll_loss norm poisson_nll_loss pow prod reciprocal
rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softplus sum tan triplet_margin_loss
vector_norm
"""
# Of one type, the widest that goes in.
_WIDEST = """
addcdiv addcmul bilinear cross dot index_put inner scatter_add tensordot vdot
"""
PRODUCTS, IN_FLOAT32, WIDEST = (frozenset(t.split()) for t in (_PRODUCTS, _FLOAT32, _WIDEST))


@dataclass
class _Casts:
    """An outermost block: parameters that were cast in it, by their gradient's place."""

    casts: dict[int, tuple[Array, int, bool, Tensor]] = field(default_factory=dict)


_on: ContextVar[bool] = ContextVar("autocast", default=False)
_block: ContextVar[_Casts | None] = ContextVar("autocast_block", default=None)


def autocasting() -> bool:
    """True inside an autocast block."""
    return _on.get()


class autocast(Block):  # noqa: N801 -- torch's name
    """Ops choose their element type by torch's rules, in a `with` block or a decorated function.

    Products run on inputs rounded to bfloat16 and give bfloat16; sums, norms, losses and the like
    take float32; everything else promotes. Parameters and their gradients stay float32; each is
    rounded once in a block. Leave the block before backward. It holds on every device:
    `device_type` is taken for torch's sake.
    """

    variable = _on

    @checked_as("autocast")
    def __init__(
        self,
        device_type: str | DType | None = None,
        dtype: DType = bfloat16,
        enabled: bool = True,
        cache_enabled: bool = True,
    ) -> None:
        if isinstance(device_type, DType):
            raise DTypeError(f"autocast: name the element type, as in autocast(dtype={dtype.name})")
        if dtype is not bfloat16:
            raise OptionError(f"autocast: dtype must be bfloat16, got {dtype!r}")
        super().__init__(enabled)
        self.enabled = enabled
        self.cache_enabled = cache_enabled

    def __enter__(self) -> None:
        super().__enter__()
        block = _block.get()
        self.before().append(block)
        if block is None and self.cache_enabled:
            _block.set(_Casts())

    def __exit__(self, *reason: object) -> None:
        _block.set(self.before().pop())
        super().__exit__(*reason)


def rule_of(name: str) -> Callable[[list[Any]], list[Any]] | None:
    """The inputs of an op of this name as an autocast block wants them; None: as they are.

    Outside of such a block the rule gives them back.
    """
    if name in PRODUCTS:
        return _rounded
    if name in IN_FLOAT32:
        return _widened
    return _widest if name in WIDEST else None


def _rounded(inputs: list[object]) -> list[Any]:
    return [_with_each(x, _as_bfloat16) for x in inputs] if _on.get() else inputs


def _widened(inputs: list[object]) -> list[Any]:
    return [_with_each(x, _as_float32) for x in inputs] if _on.get() else inputs


def _widest(inputs: list[object]) -> list[Any]:
    wide = _on.get() and any(t.dtype is float32 for x in inputs for t in _tensors(x))
    return _widened(inputs) if wide else inputs


def _tensors(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    return []


def _with_each(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A value with its tensors changed, also those in lists."""
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple) and any(isinstance(item, Tensor) for item in value):
        return type(value)(_with_each(item, change) for item in value)
    return value


def _as_float32(x: Tensor) -> Tensor:
    return table.to(x, float32) if x.dtype is bfloat16 else x


def _as_bfloat16(x: Tensor) -> Tensor:
    if x.dtype is not float32:
        return x
    block = _block.get()
    if block is None or x.leaf is None or x.node is not None:
        return table.to(x, bfloat16)
    key, now = id(x.leaf), (x.array, x.array.storage.version, graph.grad_enabled())
    entry = block.casts.get(key)
    if entry is None or entry[:3] != now:
        block.casts[key] = entry = (*now, table.to(x, bfloat16))
    return entry[3]


def autocasted(name: str, plain: F) -> F:
    """A function composed of ops, whose inputs are cast first where a list names it."""
    rule = rule_of(name)
    if rule is None:
        return plain
    cast_rule = rule

    @wraps(plain)
    def casting(*args: object, **keywords: object) -> Any:
        if not _on.get():
            return plain(*args, **keywords)
        values = cast_rule([*args, *keywords.values()])
        with autocast(enabled=False):
            return plain(
                *values[: len(args)], **dict(zip(keywords, values[len(args) :], strict=True))
            )

    return cast(F, casting)
