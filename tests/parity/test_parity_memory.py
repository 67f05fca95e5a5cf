"""Which results lie in whose memory, and what a write to them changes: as in torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

import test_parity_activations  # noqa: E402
import test_parity_layers  # noqa: E402
import test_parity_norms  # noqa: E402
import test_parity_padding  # noqa: E402
import test_parity_resize  # noqa: E402
import test_parity_windows  # noqa: E402
from both import as_list, ours, randn, theirs  # noqa: E402
from test_parity_declared_ops import along, in_torch, translated  # noqa: E402
from variants import LAYOUTS, inputs_of, places, variants  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import gradcheck, nn  # noqa: E402
from gradcli.engine.op import Op  # noqa: E402
from gradcli.errors import AutogradError  # noqa: E402

pytestmark = pytest.mark.parity

ALONE = {
    "cast": "torch's `to` is ours, which gives the tensor itself where there is nothing to cast",
    "require_finite": "torch has none",
    "rotary_embedding": "torch has none",
    "softcap": "torch has none",
    "affine": "torch does it in two steps",
    "flat_index": "part of indexing",
    "lerp_number": "part of lerp",
    "over_rms": "part of rms_norm",
    "nonzero_places": "part of nonzero",
    "rand_at": "numbers of a generator of our own",
    "with_part": "part of assignment",
}
SPELLED = {name: along(name) for name in ("index_copy", "scatter")}
# docs/differences.md: the draws behind it do not depend on p.
COPIES_AT_0 = {"dropout", "dropout1d", "dropout2d"}
ROWS = [pytest.param(op, id=op.name) for op in gradcheck.every_op() if op.name not in ALONE]


def no_share(p=0.5, training=True, **_):
    """Whether dropout draws, and leaves nothing out."""
    return p == 0 and training


def picks_nothing(index=None):
    """Whether an index consists of numbers and slices alone."""
    return isinstance(index, tuple) and not any(isinstance(part, list) for part in index)


def our_block(x):
    return id(x.array.storage)


def their_block(x):
    return x.untyped_storage().data_ptr()


def facts(inputs, outputs, block, strides):
    """For each result the first input that it shares memory with, and whether it overlaps itself.

    Nothing lies anywhere where there are no elements.
    """
    found = []
    for y in outputs:
        if 0 in tuple(y.shape):
            found.append("empty")
            continue
        given = [i for i, x in enumerate(inputs) if x is not None and 0 not in tuple(x.shape)]
        lender = next((i for i in given if block(inputs[i]) == block(y)), None)
        where = places(0, tuple(y.shape), strides(y))
        found.append((lender, len(set(where)) < len(where)))
    return found


def their_call(op, sample, inputs):
    """What torch gives."""
    options = {name: translated(option) for name, option in sample.options.items()}
    options.pop("draw", None)
    args, named = (inputs, options) if isinstance(op, Op) else op.arrange(inputs, options)
    call = SPELLED.get(op.name) or in_torch(op.name)
    return [y for y in as_list(call(*args, **named)) if isinstance(y, torch.Tensor)]


@pytest.mark.filterwarnings("ignore")  # torch's, of calls that are near what is meant
@pytest.mark.parametrize("op", ROWS)
def test_results_share_memory_as_in_torch(op):
    differing, compared = [], 0
    for sample in variants(op):
        for dtype in (engine.float32, engine.int64):
            for layout in LAYOUTS if dtype is engine.float32 else LAYOUTS[:1]:
                inputs = inputs_of(sample, dtype, layout)
                partners = [
                    None if x is None else theirs(x) for x in inputs_of(sample, dtype, layout)
                ]
                if op.name == "getitem_by_tensor" and picks_nothing(**sample.options):
                    continue  # x[0, 1] is the op getitem's, a view here too
                try:
                    outputs = gradcheck.call(op, sample, inputs)
                    expected = their_call(op, sample, partners)
                except Exception:
                    continue  # one of the two refuses it
                mine = facts(inputs, outputs, our_block, lambda y: y.array.strides)
                wanted = facts(partners, expected, their_block, lambda y: y.stride())
                shapes = [tuple(y.shape) for y in outputs] == [tuple(y.shape) for y in expected]
                compared += 1
                if op.name in COPIES_AT_0 and no_share(**sample.options) and wanted != ["empty"]:
                    wanted = [(None, False)]
                if shapes and mine != wanted:
                    differing.append((str(sample), mine, wanted))
    assert differing == []
    assert compared


LAYERS = [
    *test_parity_layers.CASES,
    *test_parity_activations.CASES,
    *test_parity_norms.CASES,
    *test_parity_padding.CASES,
    *test_parity_resize.CASES,
    *test_parity_windows.CASES,
    ("Identity", (), {}, (3, 4)),
    ("Dropout", (), {}, (3, 4)),
    ("Dropout1d", (), {}, (2, 3, 4)),
    ("Dropout2d", (), {}, (2, 3, 4, 5)),
    ("AlphaDropout", (), {}, (3, 4)),
    ("Flatten", (1,), {}, (3, 4)),
    ("Unflatten", (1, (4, 1)), {}, (3, 4)),
    ("Unflatten", (0, (3,)), {}, (3, 4)),
]


@pytest.mark.filterwarnings("ignore")  # torch's, of odd shapes
@pytest.mark.parametrize("layer", sorted({case[0] for case in LAYERS}))
def test_layers_share_memory_as_in_torch(layer):
    for name, args, options, shape in LAYERS:
        if name != layer:
            continue
        for training in (False, True):
            if training and name in ("Dropout", "Dropout1d", "Dropout2d") and args == (0.0,):
                continue  # a row of docs/differences.md
            reference = getattr(torch.nn, name)(*args, **options).train(training)
            mine = getattr(nn, name)(*args, **options).train(training)
            x = randn(*shape, dtype=torch.float32)
            given = ours(x)
            try:
                expected = as_list(reference(x))
            except ValueError:
                continue  # one value a channel is refused in training
            found = as_list(mine(given))
            wanted = facts([x], expected, their_block, lambda y: y.stride())
            assert facts([given], found, our_block, lambda y: y.array.strides) == wanted, args


# (what it is, how it is written to): x is of shape (2, 2), y a number, lib torch or gradcli.engine.
VIEWS = {
    "view": lambda lib, x: x.view(4),
    "reshape": lambda lib, x: x.reshape(4, 1),
    "t": lambda lib, x: x.t(),
    "T": lambda lib, x: x.T,
    "mT": lambda lib, x: x.mT,
    "permute": lambda lib, x: x.permute(1, 0),
    "detach": lambda lib, x: x.detach(),
    "data": lambda lib, x: x.data,
    "[:]": lambda lib, x: x[:],
    "[...]": lambda lib, x: x[...],
    "[0]": lambda lib, x: x[0],
    "[:, 1]": lambda lib, x: x[:, 1],
    "squeeze": lambda lib, x: x.squeeze(),
    "unsqueeze": lambda lib, x: x.unsqueeze(1),
    "flatten": lambda lib, x: x.flatten(),
    "expand": lambda lib, x: x.expand(2, 2),
    "chunk": lambda lib, x: x.chunk(1)[0],
    "split": lambda lib, x: x.split(1, 1)[1],
    "unbind": lambda lib, x: x.unbind(1)[0],
    "narrow": lambda lib, x: x.narrow(0, 0, 2),
    "diagonal": lambda lib, x: x.diagonal(),
    "unfold": lambda lib, x: x.unfold(0, 1, 1),
    "einsum": lambda lib, x: lib.einsum("ij->ji", x),
    "einsum of a diagonal": lambda lib, x: lib.einsum("ii->i", x),
    "contiguous": lambda lib, x: x.contiguous(),
    "to": lambda lib, x: x.to(lib.float32),
    "ravel": lambda lib, x: x.ravel(),
    "clone": lambda lib, x: x.clone(),
    "repeat": lambda lib, x: x.repeat(1, 1),
    "dropout": lambda lib, x: lib.nn.functional.dropout(x, 0.5, False),
}


def assign(x, index, value):
    x[index] = value


WRITES = {
    "x[0] = y": lambda v, y: assign(v, 0, y),
    "x[-1:] = y": lambda v, y: assign(v, slice(-1, None), y),
    "x[mask] = y": lambda v, y: assign(v, v > 1, y),
    "+=": lambda v, y: v.__iadd__(y),
    "add_": lambda v, y: v.add_(y),
    "mul_": lambda v, y: v.mul_(y),
    "copy_": lambda v, y: v.copy_(y),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_writes_through_views_change_what_they_change_in_torch(view, write):
    """Recorded ones too, where neither refuses them."""
    for recorded in (False, True):
        results = []
        for lib in (torch, engine):
            base = lib.tensor([[0.5, 1.5], [2.5, 3.5]])
            seen = VIEWS[view](lib, base)
            try:
                made = WRITES[write](seen, lib.tensor(4.0).requires_grad_(recorded) * 1)
            except (RuntimeError, AutogradError) as error:
                assert recorded and ("no gradient passes" in str(error) or lib is torch)
                assert lib is torch or base.tolist() == [[0.5, 1.5], [2.5, 3.5]]
                break
            results.append((base.tolist(), seen.tolist()))
            if recorded and write == "+=":  # which makes a new tensor here: docs/differences.md
                results[-1] = made.tolist()
        else:
            assert results[0] == results[1]
        assert recorded or len(results) == 2


def test_what_torch_refuses_of_recorded_writes_is_refused():
    for view in ("chunk", "split", "unbind"):
        base = engine.tensor([[0.5, 1.5], [2.5, 3.5]])
        with pytest.raises(AutogradError, match="no gradient passes"):
            VIEWS[view](engine, base)[0] = engine.tensor(4.0, requires_grad=True)
