"""Every module of GPU kernels is MSL as far as clang and its tokens can tell, and they can tell."""

from __future__ import annotations

import msl
import pytest
from gpu_modules import named, whole_families

from gradcli.engine.device.gpu.launch import KernelModule
from gradcli.engine.device.gpu.source import module_text, prelude_text

pytestmark = pytest.mark.skipif(not msl.clang(), reason="needs clang-19")
PRELUDE = prelude_text("metal")

FINE = """
struct Pair { uint of[2]; };
struct Held { DEV(const float) from; Pair pair; float number(uint i) const { return from[i]; } };
FN float twice(float x) { return 2 * x; }
FN uint first(Pair pair) { return pair.of[0]; }
FN float both(Held held, SHP(float) kept CTX_P) { return held.number(TID.x) + kept[LANE]; }
KERNEL(fine, 64, IN(float, x), OUT(float, y), VAL(Pair, pair), VAL(uint, n)) {
  SHARED(float, kept, 64);
  const Held held = {x, pair};
  kept[TID.x] = twice(held.number(first(pair)));
  BARRIER();
  if (BID.x < n) y[TID.x] = both(held, kept CTX_A);
}
"""
# Each is put for BODY or TOP; all have a fault that Apple's compiler refuses.
SHELL = """
%s
struct Pair { uint of[2]; };
KERNEL(probe, 64, IN(float, x), OUT(float, y), VAL(Pair, pair), VAL(uint, n)) {
  (void)x, (void)y, (void)pair, (void)n;
  %s
}
"""
BODIES = {
    "a write to what is only read": "((DEV(float))x)[0] = 1.0f; x[0] = 1.0f;",
    "device memory through a thread's pointer": "float *p = y; p[0] = 1.0f;",
    "a constant through device memory": "DEV(const uint) p = &n; y[0] = (float)p[0];",
    "double": "double d = 1.0; y[0] = (float)d;",
    "a number of double precision": "y[0] = x[0] * 0.1;",
    "an array whose length is known late": "float z[n]; z[0] = x[0]; y[0] = z[0];",
    "a lambda": "const int k = [](int v) { return v; }(1); y[0] = (float)k;",
    "a goto": "if (n) goto end; y[0] = 1.0f; end: y[1] = 1.0f;",
    "a word of Metal": "const uint half = n / 2; y[half] = 1.0f;",
    "a word that clang knows not": "const uint thread = TID.x; y[thread] = 1.0f;",
    "long long": "long long big = 1; y[0] = (float)big;",
    "shared memory in an inner scope": "if (n) { SHARED(float, s, 4); s[0] = 1; y[0] = s[0]; }",
    "a function that Metal has not": "y[0] = erf(x[0]);",
    "a function of CUDA": "y[0] = __expf(x[0]);",
    "new": "float *p = new float; *p = 1.0f;",
    "a static": "static int k = 0; y[k] = 1.0f;",
    "a reference to nowhere": "const float &v = 1.0f; y[0] = v;",
    "auto of a lambda's kind": "auto v = x[0]; y[0] = v;",
    "a structured binding": "const auto [a, b] = pair.of; y[a] = (float)b;",
}
TOPS = {
    "a function that calls itself": "FN uint down(uint n) { return n ? down(n - 1) : 0; }",
    "two that call each other": """
FN uint odd(uint n);
FN uint even(uint n) { return n ? odd(n - 1) : 1; }
FN uint odd(uint n) { return n ? even(n - 1) : 0; }""",
    "shared memory of a helper": """
FN float f(float v) { SHARED(float, s, 4); s[0] = v; return s[0]; }""",
    "a pointer to nowhere": "FN float f(float *p) { return p[0]; }",
    "a struct's reference to nowhere": """
struct Own { int k; }; FN int f(const Own &s) { return s.k; }""",
    "a method on constant memory": """
struct S { int k; int get() const { return k; } }; FN int f(VAL_REF(S) s) { return s.get(); }""",
    "a virtual function": "struct V { virtual int f() { return 1; } };",
    "a variable of the program": "int counter = 0; FN int f() { return counter++; }",
    "a pointer to a function": "FN int f(int (*g)(int)) { return g(1); }",
    "a function of Metal's": "FN float clamp(float x, float a, float b) { return x < a ? a : b; }",
    "if constexpr": "template <int N> FN int f() { if constexpr (N > 1) return 1; return 0; }",
    "a helper without ids": "FN uint f() { return TID.x; }",
}


def all_of(text: str) -> list[str]:
    """What the three checks say."""
    whole = PRELUDE + text
    return [said for said in (msl.as_cpp(whole), msl.as_opencl(whole)) if said] + msl.complaints(
        text
    )


@pytest.mark.parametrize("module", whole_families("metal"), ids=named)
def test_a_module_is_msl(module: KernelModule) -> None:
    text = module_text(module, PRELUDE)
    assert msl.as_cpp(text) == ""
    assert msl.as_opencl(text) == ""
    assert msl.complaints(text.removeprefix(PRELUDE)) == []


@pytest.mark.parametrize("module", whole_families("metal"), ids=named)
def test_a_module_needs_no_more_than_metal_has(module: KernelModule) -> None:
    text = module_text(module, PRELUDE)
    buffers = msl.kernels(text)
    assert buffers
    assert {name: n for name, n in buffers.items() if not 0 < n <= msl.MOST_BUFFERS} == {}
    shared = msl.shared_bytes(text)
    assert set(shared) <= set(buffers)
    assert {name: n for name, n in shared.items() if n > msl.MOST_SHARED} == {}


def test_a_kernel_without_faults_passes() -> None:
    assert all_of(FINE) == []
    assert msl.kernels(PRELUDE + FINE) == {"fine": 4}
    assert msl.shared_bytes(PRELUDE + FINE) == {"fine": 256}


@pytest.mark.parametrize("fault", [*BODIES, *TOPS])
def test_a_fault_is_found(fault: str) -> None:
    assert all_of(SHELL % ("", "")) == []
    assert all_of(SHELL % (TOPS.get(fault, ""), BODIES.get(fault, "")))
