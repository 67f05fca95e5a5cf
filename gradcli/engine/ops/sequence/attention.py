"""Scaled dot-product attention: weights by likeness of query and key, averages of values."""

from __future__ import annotations

import math
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine import dtype as dtypes
from gradcli.engine import graph, table
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, nothing, run, unbroadcast
from gradcli.engine.autocast import autocast
from gradcli.engine.kind import Portion
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.creation.creation import full, ones
from gradcli.engine.ops.elementwise.activation import Cap
from gradcli.engine.sample import none, sample, truth, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, GradcliError, OptionError, ShapeError

_NAME = "scaled_dot_product_attention"
Gradients = tuple[Array | None, ...]


@dataclass(frozen=True)
class _Heads:
    """The leading dimensions of a call, and the same as the kernels take them: (batch, heads)."""

    lead: Shape
    folded: tuple[int, int]

    def fold(self, x: Array) -> Array:
        """Rows of all heads as (batch, heads, rows, columns), the last of stride 1.

        Slices and dimensions in another order are no copy.
        """
        wide = x.expand((*self.lead, *x.shape[-2:]), _NAME)
        wide = wide.reshape((*self.folded, *x.shape[-2:]))
        return wide if wide.shape[-1] <= 1 or wide.strides[-1] == 1 else wide.contiguous()

    def mask(self, mask: Array | None, queries: int, keys: int, like: Array) -> Array:
        """The mask in the kernels' form; no elements where there is none."""
        if mask is None:
            return nothing(like.dtype)
        wide = mask.expand((*self.lead, queries, keys), _NAME)
        return wide.reshape((*self.folded, queries, keys))

    def unfold(self, x: Array) -> Array:
        """The kernels' form back under the leading dimensions of the call."""
        return x.reshape((*self.lead, *x.shape[-2:]))


def _heads(query: Array, key: Array, value: Array) -> _Heads:
    lead = shapes.broadcast(query.shape[:-2], key.shape[:-2], _NAME)
    lead = shapes.broadcast(lead, value.shape[:-2], _NAME)
    if len(lead) < 2:  # no heads: all that lies in memory then is one sample after another
        return _Heads(lead, (shapes.numel(lead), 1))
    return _Heads(lead, (shapes.numel(lead[:-1]), lead[-1]))


def _check(query: Array, key: Array, value: Array, mask: Array | None, is_causal: bool) -> None:
    floats(_NAME, query)
    match(_NAME, query, key=key, value=value)
    q, k, v = query.shape, key.shape, value.shape
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"{_NAME}: all need 2 or more dimensions, got {q}, {k} and {v}")
    if q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(
            f"{_NAME}: query {q}, key {k} and value {v} do not fit: expected "
            "(..., L, E), (..., S, E) and (..., S, F)"
        )
    if mask is None:
        return
    if is_causal:
        raise OptionError(f"{_NAME}: give attn_mask or is_causal=True, not both")
    if mask.dtype is not dtypes.bool_ and mask.dtype is not query.dtype:
        raise DTypeError(
            f"{_NAME}: attn_mask must be bool (True where a key is seen) or "
            f"{query.dtype.name}, got {mask.dtype.name}"
        )


def _factor(scale: float | None, depth: int) -> float:
    """What scores are multiplied by; vectors without elements have no scores but 0."""
    if scale is not None:
        return scale
    return 1 / math.sqrt(depth) if depth else 1.0


def _for_groups(query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
    """Key and value with each head repeated for the group of query heads that shares it."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ShapeError(
            f"{_NAME}: enable_gqa needs a dimension of heads, (..., H, L, E), in all of "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    heads, shared = query.shape[-3], key.shape[-3]
    if value.shape[-3] != shared or not shared or heads % shared:
        raise ShapeError(
            f"{_NAME}: with enable_gqa the heads of query must be a multiple of those of key and "
            f"value, got {heads}, {shared} and {value.shape[-3]}"
        )
    return [_repeated(x, heads // shared) for x in (key, value)]


def _repeated(x: Tensor, times: int) -> Tensor:
    *lead, heads, rows, columns = x.shape
    wide = table.expand(table.unsqueeze(x, -3), (*lead, heads, times, rows, columns))
    return table.reshape(wide, (*lead, heads * times, rows, columns))


def _decomposition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: float | None = None,
) -> Tensor:
    if enable_gqa:
        key, value = _for_groups(query, key, value)
    nothing = full((), -math.inf, dtype=query.dtype)
    scores = table.matmul(query * _factor(scale, query.shape[-1]), key.mT)
    if softcap is not None:
        scores = table.softcap(scores, softcap)
    if is_causal:
        attn_mask = table.tril(ones(scores.shape[-2:], dtype=dtypes.bool_))
    if attn_mask is not None and attn_mask.dtype is dtypes.bool_:
        scores = table.where(attn_mask, scores, nothing)
    elif attn_mask is not None:
        scores = scores + attn_mask
    if scores.numel():  # a row in which all is masked is 0
        hidden = table.amax(scores.detach(), -1, keepdim=True) == nothing
        scores = table.where(hidden, 0.0, table.softmax(table.where(hidden, 0.0, scores), -1))
    if dropout_p:
        scores = table.dropout(scores, dropout_p)
    return table.matmul(scores, value)


def _rounded_once(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> Tensor:
    """In float32, and then rounded, as by a kernel."""
    query, key, value = (x.to(dtypes.float32) for x in (query, key, value))
    if mask is not None and mask.is_floating_point():
        mask = mask.to(dtypes.float32)
    return _decomposition(query, key, value, mask, **options).to(dtypes.bfloat16)


class AttentionOp(Op[Tensor]):
    """Repeats shared heads; goes through simpler ops where weights are dropped or scores capped."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The averages of the values."""
        inputs, options = self._bind(args, keywords)
        decomposes = options.get("dropout_p", 0.0) or options.get("softcap") is not None
        query, key, value, mask = self.cast(inputs) if self.cast is not None else inputs
        assert query is not None and key is not None and value is not None
        if options.pop("enable_gqa", False):
            key, value = _for_groups(query, key, value)
        if decomposes:
            mask_array = None if mask is None else mask.array
            _check(query.array, key.array, value.array, mask_array, options.get("is_causal", False))
            rounds = query.dtype is dtypes.bfloat16 and options.get("softcap") is not None
            try:
                with autocast(enabled=False):
                    return (_rounded_once if rounds else _decomposition)(
                        query, key, value, mask, **options
                    )
            except (GradcliError, OverflowError, ValueError) as error:
                self._refuse_numbers(error, options)
                raise
        return self.ran([query, key, value, mask], options)


def attention_forward(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    *,
    dropout_p: Portion = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: Cap | None = None,
) -> tuple[Array, Array]:
    """softmax(scale query key^T + attn_mask) value, for (..., L, E), (..., S, E) and (..., S, F).

    A bool mask says which keys a query sees; a float one is added. With is_causal query i sees keys
    0 to i. A query that sees nothing gives 0. With enable_gqa key and value have fewer heads, each
    for a group of query heads (Ainslie et al. 2023). The L x S weights are never all in memory.
    With softcap, which torch does not have, a score s is softcap tanh(s / softcap) before the mask
    (Gemma 2, 2024), and the weights are in memory.
    """
    del dropout_p, enable_gqa, softcap  # what AttentionOp has seen to
    _check(query, key, value, attn_mask, is_causal)
    heads = _heads(query, key, value)
    rows = (*heads.folded, query.shape[-2])
    y = empty((rows[0], rows[2], rows[1], value.shape[-1]), query.dtype).permute((0, 2, 1, 3))
    log_sums = empty((shapes.numel(rows),), query.dtype.computed)
    run(
        "attention_forward",
        *(heads.fold(x) for x in (query, key, value)),
        heads.mask(attn_mask, query.shape[-2], key.shape[-2], query),
        y,
        log_sums,
        sizes=(int(is_causal),),
        options=(_factor(scale, query.shape[-1]),),
    )
    return heads.unfold(y), log_sums


scaled_dot_product_attention = AttentionOp(
    attention_forward,
    name=_NAME,
    outputs=("y", "log_sums"),
    saves=("query", "key", "value", "attn_mask", "y", "log_sums"),
    decomposition=_decomposition,
    double_backward="decomposition",
    samples=[
        sample((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), none()),
        sample((2, 2, 9, 3), (2, 2, 9, 3), (2, 2, 9, 3), none(), is_causal=True),
        sample((3, 5, 4), (3, 2, 4), (3, 2, 1), none(), is_causal=True, scale=0.7),
        sample((2, 4), (6, 4), (6, 3), truth((2, 6))),
        sample((2, 3, 1, 4), (1, 5, 4), (3, 5, 2), (2, 1, 1, 5), scale=-0.5),
        sample((2, 1, 2, 2, 3), (2, 3, 3), (2, 3, 2), truth((2, 1, 3))),
        sample((1, 1), (1, 1), (1, 1), none()),
        sample((2, 0, 3), (2, 4, 3), (2, 4, 3), none()),
        sample((2, 3, 3), (2, 0, 3), (2, 0, 3), none()),
        sample((2, 3, 0), (2, 4, 0), (2, 4, 3), none()),
        sample((2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), none(), enable_gqa=True),
        sample((4, 3, 2), (1, 3, 2), (1, 3, 2), none(), enable_gqa=True, is_causal=True),
        sample((1, 70, 3), (1, 130, 3), (1, 130, 2), none(), is_causal=True),
        sample((2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 3), none(), enable_gqa=True, softcap=0.7),
        sample((2, 4), (6, 4), (6, 3), truth((2, 6)), softcap=2.0),
    ],
    wrong=[
        wrong(sample((2, 3), (4, 2), (4, 2), none()), "query (2, 3), key (4, 2) and value (4, 2)"),
        wrong(sample((2, 3), (4, 3), (5, 3), none()), "do not fit"),
        wrong(sample((3,), (4, 3), (4, 3), none()), "all need 2 or more dimensions"),
        wrong(sample((2, 2, 3), (3, 4, 3), (3, 4, 3), none()), "shapes (2,) and (3,)"),
        wrong(sample((2, 3), (4, 3), (4, 3), (3, 4)), "cannot expand shape (3, 4) to (2, 4)"),
        wrong(sample((2, 3), (4, 3), (4, 3), (2, 4), is_causal=True), "or is_causal=True, not"),
        wrong(sample((3, 2, 3), (2, 4, 3), (2, 4, 3), none(), enable_gqa=True), "got 3, 2 and 2"),
        wrong(sample((4, 2, 3), (2, 4, 3), (4, 4, 3), none(), enable_gqa=True), "got 4, 2 and 4"),
        wrong(
            sample((2, 3), (4, 3), (4, 3), none(), enable_gqa=True), "needs a dimension of heads"
        ),
    ],
)
declare_op(scaled_dot_product_attention, method=False)


@scaled_dot_product_attention.gradient
def attention_gradient(
    grad: Array,
    *,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    y: Array,
    log_sums: Array,
    is_causal: bool,
    scale: float | None,
    needs: tuple[bool, ...],
) -> Gradients:
    """The weights p give d = p (grad value^T - the rows' sums of grad y), which is the mask's.

    Those of query, key and value are scale d key, scale d^T query and p^T grad.
    """
    of_mask = None
    if needs[3]:
        of_mask = _of_mask(grad, query, key, value, attn_mask, scale)
    if not any(needs[:3]):
        return None, None, None, of_mask
    heads = _heads(query, key, value)
    # Slices of one matrix get slices of one matrix back, which put side by side are no copy.
    beside = query.storage is key.storage is value.storage and query.shape[-2] == key.shape[-2]
    inputs = [heads.fold(x) for x in (query, key, value)]
    grads = empty((sum(x.numel for x in inputs),), grad.dtype)
    run(
        "attention_backward",
        *inputs,
        heads.mask(attn_mask, query.shape[-2], key.shape[-2], query),
        heads.fold(y),
        log_sums,
        heads.fold(grad),
        grads,
        sizes=(int(is_causal), int(beside)),
        options=(_factor(scale, query.shape[-1]),),
    )
    parts = _beside(grads, inputs) if beside else _in_turn(grads, inputs)
    return (
        *(
            unbroadcast(heads.unfold(part), x.shape) if need else None
            for part, x, need in zip(parts, (query, key, value), needs, strict=False)
        ),
        of_mask,
    )


def _beside(memory: Array, inputs: list[Array]) -> list[Array]:
    """The three gradients, each row of which holds those of q, k and v for all heads."""
    _, heads, rows, _ = inputs[0].shape
    ld = sum(heads * x.shape[3] for x in inputs)
    parts, offset = [], 0
    for x in inputs:
        strides = (rows * ld, x.shape[3], ld, 1)
        parts.append(memory.view(x.shape, strides, offset if x.numel else 0))
        offset += heads * x.shape[3]
    return parts


def _in_turn(memory: Array, inputs: list[Array]) -> list[Array]:
    """The three gradients one after the other, each (batch, rows, heads, columns)."""
    parts, offset = [], 0
    for x in inputs:
        batch, heads, rows, columns = x.shape
        strides = (rows * heads * columns, columns, heads * columns, 1)
        parts.append(memory.view((batch, heads, rows, columns), strides, offset if x.numel else 0))
        offset += x.numel
    return parts


def _of_mask(
    grad: Array, query: Array, key: Array, value: Array, mask: Array | None, scale: float | None
) -> Array | None:
    """The gradient of the mask, which is as large as all weights: through the decomposition."""
    assert mask is not None
    with graph.enable_grad():
        leaf = Tensor(mask, requires_grad=True)
        output = _decomposition(Tensor(query), Tensor(key), Tensor(value), leaf, scale=scale)
        output.backward(Tensor(grad))
    return None if leaf.grad is None else leaf.grad.array
