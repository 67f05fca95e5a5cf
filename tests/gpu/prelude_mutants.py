"""Planted errors in prelude_cuda.h: each changes one place of its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# What says nothing that could be wrong by itself: the ends and results of functions, empty lines.
_PLAIN = re.compile(r"\s*(\}?;?|return (c|w|rounded);|Words4 w;|uint rounded;|\}?)\s*\\?")


@dataclass(frozen=True)
class Change:
    """A place of the prelude, and what stands there instead; `times` where it occurs more often."""

    old: str
    new: str
    times: int = 1

    def of(self, prelude: str) -> str:
        """The prelude with the first of these places changed."""
        assert prelude.count(self.old) == self.times, (self.old, prelude.count(self.old))
        return prelude.replace(self.old, self.new, 1)

    def lines(self, prelude: str) -> set[int]:
        """The lines that it stands on."""
        first = prelude.count("\n", 0, prelude.index(self.old))
        return set(range(first, first + self.old.count("\n") + 1))

    @property
    def rank(self) -> bytes:
        """A number by chance, the same as long as the change is: by it changes are sampled."""
        return sha256(str(self).encode()).digest()

    def __str__(self) -> str:
        old, new = (" ".join(text.replace("\\\n", " ").split()) for text in (self.old, self.new))
        return f"`{old}` -> `{new}`"


def _body(signature: str, right: str, wrong: str) -> Change:
    """Another first line of a function."""
    return Change(f"{signature} {{\n  {right}", f"{signature} {{\n  {wrong}")


# Each would be silent or rare on a GPU.
WORST = (
    Change('"r"(b0), "r"(b1)', '"r"(b1), "r"(b0)'),
    Change("#define BARRIER() __syncthreads()", "#define BARRIER() __syncwarp()"),
    Change('asm volatile("cp.async.commit_group;" ::: "memory");', ";"),
    Change(
        "FN float warp_xor(float v, uint mask) {\n  return __shfl_xor_sync",
        "FN float warp_xor(float v, uint mask) {\n  return __shfl_down_sync",
    ),
    Change("PRELUDE_MATHS(fsin, sinf)", "PRELUDE_MATHS(fsin, cosf)"),
    Change(".x4.trans.shared.b16", ".x4.shared.b16"),
)
_KERNEL = f"#define KERNEL(name, threads, ...){' ' * 65}\\\n  "
_MATHS = f"#define PRELUDE_MATHS(name, function){' ' * 62}\\\n  FN float name(float x)"
_ROW = '"=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])'
_PLACE = '"r"(shared_place(row))\n               : "memory"'
_TURNED = (
    f'.trans.shared.b16 {{%0,%1,%2,%3}}, [%4];"\n               : {_ROW}\n               : {_PLACE}'
)
# Seen by the probes, which run on the CPU.
SEEN_RUNNING = (
    *WORST,
    Change("typedef unsigned int uint;", "typedef int uint;"),
    Change("typedef unsigned short ushort;", "typedef short ushort;"),
    Change("typedef unsigned char uchar;", "typedef short uchar;"),
    Change("typedef long long i64;", "typedef int i64;"),
    Change("typedef uint uint32_t;", "typedef int uint32_t;"),
    Change("typedef int int32_t;", "typedef uint int32_t;"),
    Change("#define VAL(T, x) const T x", "#define VAL(T, x) const T *x"),
    Change("#define VAL_REF(T) const T &", "#define VAL_REF(T) const T *"),
    Change("#define CTX_P\n", "#define CTX_P , uint\n"),
    Change("#define CTX_A\n", "#define CTX_A , 0\n"),
    Change("#define TID threadIdx", "#define TID blockIdx"),
    Change("#define BID blockIdx", "#define BID threadIdx"),
    Change("#define BDIM blockDim", "#define BDIM gridDim"),
    Change("#define GDIM gridDim", "#define GDIM blockDim"),
    Change("#define LANE (threadIdx.x & 31u)", "#define LANE (threadIdx.x & 63u)"),
    Change("#define WARP (threadIdx.x >> 5)", "#define WARP (threadIdx.x >> 6)"),
    Change("#define BARRIER() __syncthreads()", "#define BARRIER()"),
    Change("#define WARP_SYNC() __syncwarp()", "#define WARP_SYNC()"),
    Change("#define WARP_SYNC() __syncwarp()", "#define WARP_SYNC() __syncthreads()"),
    Change("#define ALL_LANES 0xffffffffu", "#define ALL_LANES 0xffffu"),
    Change("FN float warp_shfl(float v, uint lane)", "FN float warp_shfl(int v, uint lane)"),
    Change("__shfl_sync(ALL_LANES, v, lane)", "__shfl_sync(ALL_LANES, v, lane ^ 1u)"),
    Change("__shfl_sync(ALL_LANES, v, lane)", "__shfl_sync(1u, v, lane)"),
    Change("FN float warp_xor(float v, uint mask)", "FN float warp_xor(uint v, int mask)"),
    Change("FN uint warp_xor(uint v, uint mask)", "FN uint warp_xor(ushort v, uint mask)"),
    Change(
        "FN uint warp_xor(uint v, uint mask) {\n  return __shfl_xor_sync",
        "FN uint warp_xor(uint v, uint mask) {\n  return __shfl_up_sync",
    ),
    Change("__int_as_float(0x7f800000)", "__int_as_float(0x7f7fffff)"),
    Change("__int_as_float(0x7fffffff)", "__int_as_float(0x7f800000)"),
    _body("FN uint f2u(float x)", "return __float_as_uint(x)", "return (uint)x"),
    _body("FN float u2f(uint x)", "return __uint_as_float(x)", "return (float)x"),
    _body(
        "FN float ffma(float a, float b, float c)",
        "return __fmaf_rn(a, b, c)",
        "return a * b + c",
    ),
    _body("FN float fabs1(float x)", "return fabsf(x)", "return x < 0 ? -x : x"),
    _body(
        "FN float fsign(float size, float sign)",
        "return copysignf(size, sign)",
        "return sign < 0 ? -size : size",
    ),
    Change(_MATHS, _MATHS.replace("(float x)", "(int x)")),
    Change("return function(x);", "return function(-x);"),
    *(
        Change(f"PRELUDE_MATHS({name}, {right})", f"PRELUDE_MATHS({name}, {wrong})")
        for name, right, wrong in (
            ("fsqrt", "sqrtf", "cbrtf"),
            ("fcos", "cosf", "sinf"),
            ("ftan", "tanf", "tanhf"),
            ("fasin", "asinf", "acosf"),
            ("facos", "acosf", "asinf"),
            ("fatan", "atanf", "tanf"),
            ("fsinh", "sinhf", "sinf"),
            ("fcosh", "coshf", "cosf"),
            ("flog2", "log2f", "logf"),
            ("flog10", "log10f", "logf"),
            ("fexp2", "exp2f", "expf"),
            ("ffloor", "floorf", "truncf"),
            ("fceil", "ceilf", "roundf"),
            ("frint", "rintf", "roundf"),
            ("ftrunc", "truncf", "floorf"),
        )
    ),
    _body("FN float fpow(float x, float y)", "return powf(x, y)", "return powf(y, x)"),
    _body("FN float fatan2(float y, float x)", "return atan2f(y, x)", "return atan2f(x, y)"),
    _body("FN float ffmod(float x, float y)", "return fmodf(x, y)", "return remainderf(x, y)"),
    _body("FN uint umulhi(uint a, uint b)", "return __umulhi(a, b)", "return a * b"),
    _body(
        "FN bool claim(DEV(int) at, int value)",
        "return atomicCAS(at, 0, value) == 0",
        "return atomicExch(at, value) == 0",
    ),
    Change("atomicCAS(at, 0, value) == 0", "atomicCAS(at, 0, value) != 0"),
    _body(
        "FN void raise_to(DEV(int) at, int value)",
        "atomicMax(at, value)",
        "atomicMin(at, value)",
    ),
    Change("atomicMax(at, value)", "atomicExch(at, value)"),
    Change("struct Words4 {\n  uint at[4];", "struct Words4 {\n  ushort at[4];"),
    Change("struct Quad {\n  float at[4];", "struct Quad {\n  uint at[4];"),
    _body(
        "FN uint shared_place(SHP(const uint) at)",
        "return (uint)__cvta_generic_to_shared(at)",
        "return (uint)__cvta_generic_to_shared(at + 4)",
    ),
    _body(
        "FN bool aligned16(DEV(const void) at)",
        "return ((size_t)at & 15) == 0",
        "return ((size_t)at & 7) == 0",
    ),
    Change(
        "FN void copy_async(SHP(uint) to, DEV(const void) from, uint bytes) {",
        "FN void copy_async(SHP(uint) to, DEV(const void) from, uchar bytes) {\n  bytes = 16;",
    ),
    Change(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;",
        "cp.async.cg.shared.global [%0], [%1], 16;",
    ),
    Change("cp.async.cg.shared.global", "cp.async.ca.shared.global"),
    Change('"r"(bytes)\n               : "memory");', '"r"(bytes));'),
    Change('"r"(bytes)', '"r"(16)'),
    Change('asm volatile("cp.async.cg', 'asm("cp.async.cg'),
    Change("FN void copies_end() {", "FN void copies_end() {\n  return;"),
    Change('asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")', "(void)0"),
    Change(
        '"cp.async.wait_group %0;" ::"n"(groups)', '"cp.async.wait_group %0;" ::"n"(groups + 1)'
    ),
    Change('::"n"(groups) : "memory")', '::"n"(groups))'),
    Change(
        "FN Words4 load_matrices(SHP(const uint) row) {",
        "FN Words4 load_matrices(SHP(const uint) row) {\n  row = row + 4;",
    ),
    Change(
        "FN Words4 load_turned(SHP(const uint) row) {",
        "FN Words4 load_turned(SHP(const uint) row) {\n  return load_matrices(row);",
    ),
    Change(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
    ),
    Change(_ROW, _ROW.replace("at[0]", "at[1]", 1), 2),
    Change(_PLACE, _PLACE.replace(': "memory"', ""), 2),
    Change(_TURNED, _TURNED.replace("at[0]", "at[1]", 1)),
    Change(_TURNED, _TURNED.replace(': "memory"', "")),
    Change("#define PRELUDE_MMA(name, shape)", "#define PRELUDE_MMA(shape, name)"),
    Change(
        "FN Quad name(Quad c, Words4 a, uint b0, uint b1)",
        "FN Quad name(Quad c, Words4 a, uint b1, uint b0)",
    ),
    Change("{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};", "{%4,%6,%5,%7}, {%8,%9}, {%0,%1,%2,%3};"),
    Change('"+f"(c.at[0])', '"=f"(c.at[0])'),
    Change('"+f"(c.at[2]), "+f"(c.at[3])', '"+f"(c.at[3]), "+f"(c.at[2])'),
    Change('"r"(a.at[1]), "r"(a.at[2])', '"r"(a.at[2]), "r"(a.at[1])'),
    Change('"m16n8k16.row.col.f32.bf16.bf16.f32"', '"m16n8k16.row.col.f32.f16.f16.f32"'),
    Change('"m16n8k8.row.col.f32.tf32.tf32.f32"', '"m16n8k8.row.col.f32.bf16.bf16.f32"'),
    Change("PRELUDE_MMA(mma_tf32", "PRELUDE_MMA(mma_tf32_"),
    Change("FN uint round_tf32(uint bits) {", "FN uint round_tf32(uint bits) {\n  return bits;"),
    Change('"cvt.rna.tf32.f32 %0, %1;"', '"cvt.rn.tf32.f32 %0, %1;"'),
    Change('"f"(u2f(bits))', '"f"((float)bits)'),
)
# Seen in what NVRTC makes of a kernel: nothing of it shows in numbers.
SEEN_COMPILED = (
    Change("#define FN static __forceinline__", "#define FN static __noinline__"),
    Change(_KERNEL + "extern", _KERNEL.replace("threads", "name") + "extern"),
    Change('extern "C" __global__ void __launch_bounds__(threads)', 'extern "C" __global__ void'),
    Change('extern "C" __global__ void __launch_bounds__', "__global__ void __launch_bounds__"),
    Change("#define IN(T, x) const T *__restrict__ x", "#define IN(T, x) const T *x"),
    Change("#define OUT(T, x) T *__restrict__ x", "#define OUT(T, x) const T *x"),
    Change("#define INOUT(T, x) T *x", "#define INOUT(T, x) const T *x"),
    Change("#define DEV(T) T *", "#define DEV(T) const T *"),
    Change("#define SHP(T) T *", "#define SHP(T) const T *"),
    Change("__shared__ __align__(16) T name[n]", "__shared__ T name[n]"),
    Change("__shared__ __align__(16) T name[n]", "T name[n]"),
    Change(
        "#define RESIDENT(threads, blocks) threads, blocks",
        "#define RESIDENT(threads, blocks) threads",
    ),
    Change('#define UNROLL _Pragma("unroll")', "#define UNROLL"),
    Change('#define ROLLED _Pragma("unroll 1")', "#define ROLLED"),
)


def uncovered(prelude: str) -> list[str]:
    """The lines of a prelude that no change touches."""
    text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), prelude)
    changed = set().union(*(one.lines(prelude) for one in (*SEEN_RUNNING, *SEEN_COMPILED)))
    return [
        line
        for number, line in enumerate(text.split("\n"))
        if number not in changed and not _PLAIN.fullmatch(line)
    ]
