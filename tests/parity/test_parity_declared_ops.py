"""Every op and function, on every sample it declares, against torch's function of its name."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
from both import FLOATS, ours, theirs  # noqa: E402
from torch.nn import functional  # noqa: E402

from gradcli.engine import gradcheck  # noqa: E402
from gradcli.engine.dtype import DType  # noqa: E402
from gradcli.engine.op import Op  # noqa: E402

pytestmark = pytest.mark.parity


def stepped(cell, states):
    """A recurrent layer over time from the formula of torch's cells; `x` is projected before."""

    def call(x, w_hh, *rest, batch_first=False, reverse=False, **options):
        x = x.transpose(0, 1) if batch_first else x
        weights, given = (w_hh, *rest[:-states]), rest[-states:]
        zero = x.new_zeros(x.shape[1], w_hh.shape[1])
        now = [zero if state is None else state for state in given]
        y = []
        for row in x.flip(0) if reverse else x:
            now = cell(row, *weights, *now, **options)
            y.append(now[0])
        y = torch.stack(y[::-1] if reverse else y)
        return (y.transpose(0, 1) if batch_first else y, *now)

    return call


def rnn(x, w, h, nonlinearity="tanh"):
    return (getattr(torch, nonlinearity)(x + h @ w.T),)


def lstm(x, w, h, c):
    i, f, g, o = (x + h @ w.T).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru(x, w, b, h):
    mine, (r, z, n) = h @ w.T if b is None else h @ w.T + b, x.chunk(3, 1)
    r_h, z_h, n_h = mine.chunk(3, 1)
    r, z = (r + r_h).sigmoid(), (z + z_h).sigmoid()
    return ((1 - z) * (n + r * n_h).tanh() + z * h,)


def attention(q, k, v, mask=None, softcap=None, enable_gqa=False, **options):
    """Torch's function, which knows no cap of scores: with one, by Gemma's formula."""
    if softcap is None:
        whole = functional.scaled_dot_product_attention
        return whole(q, k, v, mask, enable_gqa=enable_gqa, **options)
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = softcap * torch.tanh(q @ k.mT / math.sqrt(q.shape[-1]) / softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def halved(gate):
    """The first half through one function, and the second through another."""

    def call(x, dim=-1):
        first, second = x.chunk(2, dim)
        return gate(first) * second

    return call


def assigned(x, index, value):
    x[index] = value
    return x


def spread(function):
    """std and var: torch takes no `unbiased=None`."""

    def call(x, unbiased=None, **options):
        if unbiased is not None:
            options.pop("correction", None)
            options["unbiased"] = unbiased
        return function(x, **options)

    return call


def along(name):
    """Torch has the dimension in front of the index, and no gradient of a larger source."""

    def call(x, index, *source, dim, **options):
        given = [y[tuple(slice(n) for n in index.shape)] if index.ndim > 1 else y for y in source]
        return getattr(torch, name)(x, dim, index, *given, **options)

    return call


def not_empty(function):
    """Of no images torch's result, or gradient, has the wrong shape: one is added and taken off."""

    def call(x, **options):
        if x.numel():
            return function(x, **options)
        return function(torch.cat([x, x.new_zeros(1, *x.shape[1:])]), **options)[:-1]

    return call


# Where torch has another name, place or order for the same thing.
SPELLED = {
    "binary_cross_entropy_with_logits": lambda x, target, weight, pos_weight, **options: (
        functional.binary_cross_entropy_with_logits(
            x, target, weight, pos_weight=pos_weight, **options
        )
    ),
    "bfloat16": torch.Tensor.bfloat16,
    "bool": torch.Tensor.bool,
    "cast": torch.Tensor.to,
    "col2im": functional.fold,
    "double": torch.Tensor.double,
    "expand": lambda x, size: x.expand(size),
    "float": torch.Tensor.float,
    "getitem": lambda x, index: x[index],
    "getitem_by_tensor": lambda x, index: x[index],
    "gather": along("gather"),
    "group_norm": lambda x, weight, bias, num_groups, **options: functional.group_norm(
        x, num_groups, weight, bias, **options
    ),
    "gru_steps": stepped(gru, 1),
    # torch's own gradient has the sixth of a float32 in float64 too.
    "hardsigmoid": lambda x: functional.relu6(x + 3) / 6,
    "im2col": functional.unfold,
    "index_add": along("index_add"),
    "index_select": lambda x, index, dim: torch.index_select(x, dim, index),
    "int": torch.Tensor.int,
    "isin": lambda elements, test_elements, **options: torch.isin(
        elements, test_elements, **options
    ),
    "join": lambda a, b, dim: torch.cat([a, b], dim),
    "layer_norm": lambda x, weight, bias, normalized_shape, **options: functional.layer_norm(
        x, torch.Size(torch.atleast_1d(torch.tensor(normalized_shape))), weight, bias, **options
    ),
    "long": torch.Tensor.long,
    "lstm_steps": stepped(lstm, 2),
    "meshgrid": lambda *tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing),
    "pixel_shuffle": not_empty(functional.pixel_shuffle),
    "pixel_unshuffle": not_empty(functional.pixel_unshuffle),
    "relu_squared": lambda x: functional.relu(x).square(),
    "rms_norm": lambda x, normalized_shape, *rest, **options: functional.rms_norm(
        x, torch.Size(torch.atleast_1d(torch.tensor(normalized_shape))), *rest, **options
    ),
    "rnn_steps": stepped(rnn, 1),
    "scaled_dot_product_attention": attention,
    "scatter_add": along("scatter_add"),
    "scatter_reduce": along("scatter_reduce"),
    "setitem": assigned,
    "split": lambda x, split_size, dim=0: torch.split(x, split_size, dim),
    "std": spread(torch.std),
    "swiglu": halved(functional.silu),
    "tensor_split": lambda x, indices_or_sections, dim=0: torch.tensor_split(
        x, indices_or_sections, dim
    ),
    "threshold": functional.threshold,
    "tile": torch.Tensor.tile,
    "transfer": torch.Tensor.to,
    "unfold": torch.Tensor.unfold,
    "var": spread(torch.var),
    "vector_norm": lambda x, dim=None, keepdim=False: torch.linalg.vector_norm(x, 2, dim, keepdim),
}
ALONE = {
    "over_rms": "part of rms_norm, which is compared as a whole",
    "lerp_number": "part of lerp, which tests/parity/test_parity_elementwise.py compares",
    "affine": "torch does it in two steps; tests/reference_index.py has its maths",
    "rand_at": "numbers of a generator of our own; tests/reference_index.py draws them again",
    "with_part": "assignment; tests/parity/test_parity_indexing.py compares x[index] = value",
    "flat_index": "part of indexing; tests/parity/test_parity_indexing.py compares the whole",
    "index_copy": "torch gives what was overwritten a gradient; test_parity_gather.py has the rest",
    "rotary_embedding": "torch has none; tests/engine/test_nn_positions.py has its formula",
    "softcap": "torch has none; tests/engine/ops/elementwise/test_softcap.py has its formula",
    "nonzero_places": "part of nonzero, which tests/parity/test_parity_gather.py compares",
    "scatter": "torch gives what was overwritten a gradient; test_parity_gather.py has the rest",
    "dropout": "draws its own random numbers; tests/parity/test_parity_layers.py compares the rest",
    **dict.fromkeys(
        ["alpha_dropout", "dropout1d", "dropout2d"],
        "draw their own random numbers; test_parity_norms.py looks at their shares",
    ),
    **dict.fromkeys(
        ["normal_", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "uniform_"],
        "draw their own random numbers; tests/engine/test_random.py looks at their spread",
    ),
    **dict.fromkeys(
        ["bernoulli", "bernoulli_", "multinomial", "normal", "randint_like"],
        "draw their own random numbers; test_parity_ranked.py looks at their spread",
    ),
    **dict.fromkeys(["empty_like", "new_empty"], "memory without contents"),
    "require_finite": "torch has none; it gives its input, or refuses it",
}
# torch calls these constants: it has no gradient of them.
CONSTANTS = {
    ("bincount", "input 1"),
    ("batch_norm", "running_mean"),
    ("batch_norm", "running_var"),
    ("binary_cross_entropy", "weight"),
    ("binary_cross_entropy_with_logits", "weight"),
    ("binary_cross_entropy_with_logits", "pos_weight"),
    ("cross_entropy", "weight"),
    ("instance_norm", "input 1"),  # the running mean
    ("instance_norm", "input 2"),  # the running variance
    ("multi_margin_loss", "input 2"),  # the weight
    ("nll_loss", "weight"),
    ("unique", "input 0"),
    ("unique_consecutive", "input 0"),
}
# torch refuses these calls, which have one clear meaning.
REFUSED = (
    "weight tensor expected, but got: [2, 0",  # a convolution to no channels
    "expected weight to be at least 1 at dimension 0",
    "pad should be smaller than or equal to half",  # of the kernel, its dilation left out
    "padding should be at most half of kernel size",  # so too
)
CASES = [
    pytest.param(op, sample, id=f"{op.name}{sample}")
    for op in gradcheck.every_op()
    if op.name not in ALONE
    for sample in op.samples
]


def in_torch(name):
    """The function that has this name in torch."""
    places = (torch.nn.functional, torch, torch.Tensor)
    found = [getattr(place, name) for place in places if hasattr(place, name)]
    return SPELLED.get(name) or found[0]


def test_every_op_has_a_partner_or_a_reason():
    names = {op.name for op in gradcheck.every_op()}
    lacking = []
    for name in names - set(ALONE):
        try:
            in_torch(name)
        except IndexError:
            lacking.append(name)
    assert sorted(lacking) == []
    assert sorted(set(ALONE) - names) == []


def translated(option):
    """Element types are torch's there."""
    return getattr(torch, option.name) if isinstance(option, DType) else option


def backward(outputs):
    """From fixed numbers, the same for both."""
    for y in outputs:
        if y.requires_grad:
            start = torch.tensor([math.sin(i) for i in range(math.prod(y.shape))])
            start = start.reshape(tuple(y.shape)).to(getattr(torch, str(y.dtype).partition(".")[2]))
            y.backward(start if isinstance(y, torch.Tensor) else ours(start), retain_graph=True)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.filterwarnings("ignore:(std|var).*degrees of freedom is <= 0")
@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim")
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_values_and_gradients(agree, op, sample, dtype):
    inputs = gradcheck.make_inputs(sample, dtype=FLOATS[dtype])
    for x in inputs:
        if op.differentiable and x is not None and x.is_floating_point():
            x.requires_grad_()
    partners = [None if x is None else theirs(x).clone() for x in inputs]
    names = gradcheck.input_names(op, sample)
    found = gradcheck.call(op, sample, inputs)
    backward(found)
    ends = [
        (x, partner.requires_grad_())
        for name, x, partner in zip(names, inputs, partners, strict=True)
        if x is not None and x.grad is not None and (op.name, name) not in CONSTANTS
    ]
    options = {name: translated(option) for name, option in sample.options.items()}
    args, named = (partners, options) if isinstance(op, Op) else op.arrange(partners, options)
    try:
        expected = in_torch(op.name)(*args, **named)
    except RuntimeError as error:
        assert any(text in str(error) for text in REFUSED)
        return
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    expected = [y for y in expected if isinstance(y, torch.Tensor)]
    for y, want in zip(found, expected, strict=True):
        agree(op.name, y, want)
    backward(expected)
    for x, partner in ends:
        # Where torch's gradient is left out, as that of a count is, it is 0.
        want = torch.zeros_like(partner) if partner.grad is None else partner.grad
        agree(op.name, x.grad, want)
