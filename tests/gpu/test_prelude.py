"""prelude_cuda.h, which GPUs read and no other test compiles: what its names do is tried on the
CPU, and that an error planted in any of its lines is seen. GRADCLI_MUTANTS=all plants all of them,
else those that hardware would keep silent about, and a sample."""

from __future__ import annotations

import os

import pytest
from prelude_mutants import SEEN_COMPILED, SEEN_RUNNING, WORST, Change, uncovered
from prelude_probes import complaints

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra 'cuda'")

from gradcli.engine.device.gpu import nvrtc
from gradcli.engine.device.gpu.source import prelude_text
from gradcli.errors import DeviceError

SAMPLED = 12
PRELUDE = prelude_text("cuda")
# What a compiler makes of words that change no number.
COMPILED = """
FN float turned(float x CTX_P) {
  for (uint i = 0; i < 9; i++)
    x = fsin(x) + fcos(x);
  return x;
}
KERNEL(bounded, RESIDENT(128, 2), IN(float, x), OUT(float, y), INOUT(float, z)) {
  SHARED(float, kept, 40);
  SHP(float) const own = kept + TID.x % 40;
  DEV(float) at = z;
  own[0] = x[TID.x];
  BARRIER();
  y[TID.x] = kept[39 - TID.x % 40];
  at[TID.x] = turned(turned(at[TID.x] CTX_A) CTX_A);
}
KERNEL(unrolled, 32, INOUT(float, a)) {
  UNROLL for (uint i = 0; i < 200; i++) a[7 * i + 1] = a[i];
}
KERNEL(rolled, 32, INOUT(float, a)) {
  ROLLED for (uint i = 0; i < 4; i++) a[7 * i + 1] = a[i];
}
"""


def chosen() -> list[Change]:
    """What is planted in this run, the worst ones always."""
    if os.environ.get("GRADCLI_MUTANTS") == "all":
        return list(SEEN_RUNNING)
    others = [one for one in SEEN_RUNNING if one not in WORST]
    return [*WORST, *sorted(others, key=lambda one: one.rank)[:SAMPLED]]


def compiled_otherwise(prelude: str) -> list[str]:
    """What a prelude lacks in the PTX of a few kernels."""
    try:
        text = nvrtc.compile_text("words", prelude + COMPILED, "compute_80").image.decode()
    except DeviceError as error:
        return [error.message]
    kernels = {part.partition("(")[0].strip(): part for part in text.split(".entry ")}
    bounded = kernels.get("bounded", "")
    facts = {
        "names of kernels": set(kernels) >= {"bounded", "unrolled", "rolled"},
        "most threads": ".maxntid 128, 1, 1" in bounded,
        "blocks at once": ".minnctapersm 2" in bounded,
        "shared memory": ".shared .align 16 .b8 " in bounded and "kept[160]" in bounded,
        "reads of what nobody writes": "ld.global.nc.f32" in bounded,
        "functions in place": ".func" not in text,
        "an unrolled loop": kernels.get("unrolled", "").count("st.global") == 200,
        "a loop": kernels.get("rolled", "").count("st.global") == 1,
    }
    return [name for name, is_there in facts.items() if not is_there]


def test_the_names_do_what_they_say() -> None:
    assert complaints(PRELUDE) == []


def test_words_for_the_compiler_are_heard() -> None:
    assert compiled_otherwise(PRELUDE) == []


@pytest.mark.parametrize("change", chosen(), ids=str)
def test_a_planted_error_is_seen(change: Change) -> None:
    assert complaints(change.of(PRELUDE)) != []


@pytest.mark.parametrize("change", SEEN_COMPILED, ids=str)
def test_a_planted_error_is_seen_in_ptx(change: Change) -> None:
    assert compiled_otherwise(change.of(PRELUDE)) != []


def test_errors_are_planted_in_every_line() -> None:
    assert uncovered(PRELUDE) == []


def test_a_statement_without_a_model_fails() -> None:
    change = Change(
        "PRELUDE_MATHS(fsin, sinf)", 'FN float fsin(float x) { asm("sin %0;"); return x; }'
    )
    assert any(
        "no model of the PTX statement 'sin %0;'" in one for one in complaints(change.of(PRELUDE))
    )
