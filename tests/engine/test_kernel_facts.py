"""What csrc/kernels.h says of a kernel is what the kernel does, and is said nowhere else."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import pytest
from test_calls import KEEP, SIZES, tensor
from test_fitting_calls import BOOL, BUILDERS, F32, F64, I64, U8, Spec

from gradcli import engine
from gradcli.engine.array import MOVE_BFLOAT16
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import FACTS, NAMES, ffi, lib
from gradcli.engine.table import OPS

PACKAGE = Path(__file__).resolve().parents[2] / "gradcli"
STEPS = sorted(name for name in FACTS if name.endswith("_step"))


def test_a_kernel_has_the_number_that_c_knows_it_by() -> None:
    assert [FACTS[name].number for name in NAMES] == list(range(len(FACTS)))
    assert lib.gc_kernel_facts(len(FACTS)) == ffi.NULL
    assert lib.gc_kernel_facts(-1) == ffi.NULL


def test_an_op_is_what_stands_before_the_direction() -> None:
    ops = {"tanh_backward": "tanh", "div_backward_a": "div", "lstm_forward": "lstm"}
    assert {name: FACTS[name].op for name in ops} == ops
    assert FACTS["flat_index"].op == "flat_index"


def test_a_row_has_a_word_for_each_tensor() -> None:
    """Only those of a chain, of which most may be missing, are checked by its plan alone."""
    for name, facts in FACTS.items():
        assert len(facts.shapes) == (0 if name == "chain" else facts.inputs + facts.outputs), name


def test_words_and_facts_say_the_same_of_strides() -> None:
    for name, facts in FACTS.items():
        marks = [word[0] for word in facts.shapes]
        assert not facts.any_strides or set(marks) == {"~"}, name
        assert all(marks[i] == "~" for i in facts.matrices), name
        assert all(marks[i] == "-" for i in facts.rows), name


CALLS_THAT_FIT: dict[str, list[Spec]] = {
    "eq": [([2, 3], F32), ([2, 3], F32), ([2, 3], BOOL)],
    "exp_backward": [([2, 3], F32), ([2, 3], F32), ([2, 3], F32)],
    "select_backward": [([2, 1, 4], I64), ([2, 1, 4], F32), ([2, 3, 4], F32)],
    "layer_norm": [([2, 3], F32), ([3], F32), ([0], F32), ([2, 3], F32), ([2], F32), ([2], F32)],
    "matmul": [([1, 2, 3], F32), ([1, 3, 4], F32), ([4], F32), ([1, 2, 4], F32)],
    "dropout_forward": [([4], F32), ([3], I64), ([4], F32), ([4], U8)],
    "rnn_forward": [([2, 3, 4], F32), ([4, 4], F32), ([3, 4], F32), ([2, 3, 4], F32)],
    "affine": [([2, 1, 3, 3], F32), ([2, 6], F32), ([2, 1, 3, 3], F32)],
    "sgd_momentum_step": [([5], F32), ([2], F64), ([5], F32), ([5], F32)],
}


def changes(shape: list[int], dtype: int, word: str) -> Iterator[Any]:
    """The tensor, each time with something about it that its word forbids."""
    room = cpu.allocate(4096)
    KEEP.append(room)
    yield tensor(shape, dtype=2, storage=room)
    yield tensor([*shape[:-1], shape[-1] + 1], dtype=dtype, storage=room)
    yield tensor([1, *shape], dtype=dtype, storage=room)
    if word[0] != "~" and shape[-1]:
        strides = [2 * prod(shape[d + 1 :]) for d in range(len(shape))]
        yield tensor(shape, dtype=dtype, strides=strides, storage=room)


def plan_of(kernel: str, *tensors: Any) -> tuple[int, Any, Any]:
    """What the door and the plan say of a call; the call, and the error."""
    call, error = ffi.new("gc_call *"), ffi.new("gc_error *")
    call.kernel, call.ntensors = FACTS[kernel].number, len(tensors)
    for i, one in enumerate(tensors):
        call.tensors[i] = one[0]
    return lib.gc_plan_call(call, ffi.new("gc_plan *"), error), call, error


@pytest.mark.parametrize("kernel", CALLS_THAT_FIT)
def test_a_tensor_that_is_not_what_its_word_says_is_refused(kernel: str) -> None:
    specs = CALLS_THAT_FIT[kernel]
    tensors = [tensor(shape, dtype=dtype) for shape, dtype in specs]
    assert plan_of(kernel, *tensors)[0] == lib.GC_OK
    for i, (shape, dtype) in enumerate(specs):
        for other in changes(shape, dtype, FACTS[kernel].shapes[i]):
            status, _, _ = plan_of(kernel, *tensors[:i], other, *tensors[i + 1 :])
            assert status in (lib.GC_BAD_SHAPE, lib.GC_BAD_DTYPE)


def test_a_refusal_says_what_the_tensors_of_a_kernel_are() -> None:
    shapes = [2, 1, 3, 3], [2, 5], [2, 1, 3, 3]
    status, call, error = plan_of("affine", *map(tensor, shapes))
    assert status == lib.GC_BAD_SHAPE
    assert str(cpu.refusal("affine", call.tensors, error)) == (
        "affine: kernel 'affine' wanted another shape or other strides as tensor 1, "
        "got shape (2, 5); its tensors are nchw, n6, nchw"
    )


@pytest.mark.usefixtures("isa")
def test_what_moves_bfloat16_is_built_for_it_everywhere() -> None:
    assert {"copy", "fill"} == MOVE_BFLOAT16
    assert all(cpu.kernel_built(name, engine.bfloat16) for name in MOVE_BFLOAT16)


def step_of(kernel: str) -> list[Spec]:
    """The gradient, learning rate and step, and what an optimizer keeps up."""
    specs: list[Spec] = [([7], F32), ([2], F64), *([([7], F32)] * FACTS[kernel].outputs)]
    if kernel == "nadam_step":
        specs[-1] = ([1], F64)
    return specs


def calls_of(kernel: str, rng: random.Random) -> tuple[list[Spec], list[int]]:
    if kernel in STEPS:
        return step_of(kernel), []
    if kernel == "scale_by":
        return [([1], F64), ([9], F32)], []
    return BUILDERS[kernel](rng)


def fill(made: Any, numbers: list[float]) -> None:
    kind = {F32: "float", F64: "double"}.get(made.dtype)
    if kind is None:
        ffi.memmove(made.data, bytes(made.nbytes), made.nbytes)
    else:
        count = made.nbytes // ffi.sizeof(kind)
        ffi.cast(f"{kind} *", made.data)[0:count] = (numbers * count)[:count]


def results(kernel: str, specs: list[Spec], sizes: list[int], changed: int) -> list[bytes] | None:
    """The outputs of a call, of which one held other numbers before; None where it is refused."""
    inputs, made = FACTS[kernel].inputs, []
    for i, (shape, dtype) in enumerate(specs):
        one = tensor(list(shape), dtype=dtype)
        one.nbytes = prod(shape) * SIZES.get(dtype, 8)
        numbers = [0.5] if i >= inputs else [0.25, 1.5, -0.75, 0.5, 2.0]
        fill(one, [3.0] if i == changed else numbers)
        made.append(one)
    call = ffi.new("gc_call *")
    call.kernel, call.ntensors = FACTS[kernel].number, len(specs)
    for i, one in enumerate(made):
        call.tensors[i] = one[0]
    call.sizes = [*sizes, *[0] * (16 - len(sizes))]
    call.options = [0.5] * 8
    if lib.gc_run(call, 1, ffi.new("gc_error *")):
        return None
    return [bytes(ffi.buffer(one.data, one.nbytes)) for one in made[inputs:]]


def read_outputs(kernel: str, specs: list[Spec], sizes: list[int]) -> Iterator[int]:
    """Outputs of which what they held before makes a difference."""
    before = results(kernel, specs, sizes, -1)
    for i in range(FACTS[kernel].outputs if before is not None else 0):
        after = results(kernel, specs, sizes, FACTS[kernel].inputs + i)
        if after != before:
            yield i


@pytest.mark.parametrize("kernel", sorted({*BUILDERS, *STEPS, "scale_by"} - {"chain"}))
def test_a_kernel_reads_the_outputs_that_it_is_said_to_update(kernel: str) -> None:
    rng = random.Random(kernel)
    read: set[int] = set()
    for _ in range(1 if kernel in STEPS else 25):
        read.update(read_outputs(kernel, *calls_of(kernel, rng)))
    assert read == set(FACTS[kernel].updates)


def test_another_build_is_refused_in_one_sentence() -> None:
    program = (
        "import sys, types\n"
        "old = types.ModuleType('gradcli.engine.device._cpu'); old.ffi = old.lib = object()\n"
        "sys.modules[old.__name__] = old\n"
        "import gradcli.engine"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "were built from another version of csrc/" in done.stderr.splitlines()[-1]


# These name kernels to say how a GPU launches them, and which rows are tried.
LISTS = ("gradcli/engine/device/gpu/launches/", "gradcli/engine/kernelcheck/others.py")


def listed(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """The texts in every dict (its keys), set, list and tuple."""
    for node in ast.walk(tree):
        texts: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            texts = list(node.keys)
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            texts = list(node.elts)
        values = [text.value for text in texts if isinstance(text, ast.Constant)]
        yield getattr(node, "lineno", 0), {text for text in values if isinstance(text, str)}


# Where a name can only be a kernel's. Elsewhere ops, and layers and losses in YAML, have names too.
BELOW_OPS = (
    "gradcli/bench/calls.py",
    "gradcli/bench/counting.py",
    "gradcli/engine/array.py",
    "gradcli/engine/device/",
    "gradcli/engine/kernelcheck/",
    "gradcli/engine/program/",
)
WORDS = set(OPS) | {"mse", "l1", "smooth_l1", "huber", "bce", "kl", "uniform", "normal"}


def lists_of_kernels(path: Path) -> list[int]:
    """Lines where three kernels or more stand in a list."""
    below = path.relative_to(PACKAGE.parent).as_posix().startswith(BELOW_OPS)
    kernels = set(FACTS) - (set() if below else WORDS)
    return [line for line, texts in listed(ast.parse(path.read_text())) if len(texts & kernels) > 2]


def test_no_module_keeps_a_list_of_kernels() -> None:
    places = [
        f"{path.relative_to(PACKAGE.parent).as_posix()}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in lists_of_kernels(path)
    ]
    assert not [place for place in places if not place.startswith(LISTS)]


def test_such_a_list_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "gradcli")
    path = tmp_path / "gradcli" / "engine" / "array.py"
    path.parent.mkdir(parents=True)
    path.write_text("READ = {'copy': 1, 'fill': 2, 'adam_step': 3}\nTWO = ('copy', 'fill')\n")
    assert lists_of_kernels(path) == [1]


def test_the_instruction_set_that_is_asked_for_is_the_one_that_computes() -> None:
    before = cpu.isa()
    try:
        chosen = {name: cpu.isa() for name in cpu.INSTRUCTION_SETS if cpu.set_isa(name)}
        assert not cpu.set_isa("none of these")
    finally:
        cpu.set_isa(before)
    assert chosen == {name: name for name in chosen}
    assert {"baseline", before} <= set(chosen)
