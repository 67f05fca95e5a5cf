"""Probes of prelude_cuda.h: small kernels that call each of its names, and what they must give."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence

from host_driver import HostDriver

from gradcli.engine.device.gpu.driver import Ready
from gradcli.engine.device.gpu.source import prelude_text
from gradcli.engine.kernelcheck.replay import content, filled
from gradcli.errors import DeviceError

MATHS: dict[str, Callable[[float], float]] = {
    "fsqrt": math.sqrt,
    "fsin": math.sin,
    "fcos": math.cos,
    "ftan": math.tan,
    "fasin": lambda x: math.asin(x / 8),
    "facos": lambda x: math.acos(x / 8),
    "fatan": math.atan,
    "fsinh": math.sinh,
    "fcosh": math.cosh,
    "flog2": math.log2,
    "flog10": math.log10,
    "fexp2": lambda x: 2.0**x,
    "ffloor": math.floor,
    "fceil": math.ceil,
    "frint": round,
    "ftrunc": math.trunc,
}
OF_TWO: dict[str, Callable[[float, float], float]] = {
    "fpow": math.pow,
    "fatan2": math.atan2,
    "ffmod": math.fmod,
}
NUMBERS = [0.5 + 0.1875 * i for i in range(32)]  # exact in float32
_SCALED = {"fasin", "facos"}  # by 1 / 8, into their domain
_SIGNED = {"ffloor", "fceil", "frint", "ftrunc", "fatan", "fsinh"}  # tried below 0 too
_ALL_PLACES = range(2 * 3 * 2 * 64)  # of the grid of `places`

_MATHS_TEXT = "".join(
    f"  y[{32 * k}u + LANE] = {name}({'v / 8.0f' if name in _SCALED else 'v'});\n"
    + (f"  z[{32 * k}u + LANE] = {name}(-v);\n" if name in _SIGNED else "")
    for k, name in enumerate(MATHS)
)
_OF_TWO_TEXT = "".join(
    f"  y[{32 * k}u + LANE] = {name}(v, 1.75f);\n" for k, name in enumerate(OF_TWO, len(MATHS))
)
TEXT = f"""
struct Pair {{ int first; float second; }};
FN float both(VAL_REF(Pair) pair CTX_P) {{ return (float)pair.first + pair.second; }}
KERNEL(maths, 32, IN(float, x), OUT(float, y), OUT(float, z)) {{
  const float v = x[LANE];
{_MATHS_TEXT}{_OF_TWO_TEXT}}}
KERNEL(bits, 32, IN(float, x), OUT(uint, y), VAL(Pair, pair)) {{
  DEV(const float) at = x + 1;
  if (TID.x > 0)
    return;
  y[0] = f2u(x[0]);
  y[1] = f2u(u2f(0x40490fdbu) * 2.0f);
  y[2] = f2u(ffma(x[1], x[1], -x[2]));
  y[3] = f2u(fabs1(x[3]));
  y[4] = f2u(fsign(-x[0], x[3]));
  y[5] = umulhi(0x89abcdefu, 0xfedcba98u);
  y[6] = f2u(INFINITY);
  y[7] = f2u(NAN);
  y[8] = f2u(both(pair CTX_A));
  y[9] = aligned16(x) * 1u + aligned16(at) * 2u + aligned16(at + 1) * 4u + aligned16(x + 4) * 8u;
  y[10] = (i64)0x7fffffff + 1 > 0 && (int32_t)-1 < 0 && (uint32_t)-1 > 0 && sizeof(ushort) == 2 &&
    (uchar)257 == 1;
}}
KERNEL(warps, 64, OUT(uint, y)) {{
  const float v = 3.5f * (float)TID.x;
  y[TID.x] = f2u(warp_shfl(v, (LANE + 5u) % 32u));
  y[64 + TID.x] = f2u(warp_xor(v, 9u));
  y[128 + TID.x] = warp_xor(7u * TID.x, 18u);
}}
KERNEL(places, 64, OUT(uint, y)) {{
  const uint block = BID.x + GDIM.x * (BID.y + GDIM.y * BID.z);
  y[block * BDIM.x + TID.x] = LANE + 32u * WARP + 1000u * BID.x + 10000u * BID.y + 100000u * BID.z;
}}
KERNEL(atomics, 64, INOUT(int, x), OUT(int, y)) {{
  y[TID.x] = claim(x, (int)TID.x + 1);
  raise_to(x + 1, (int)(37u * TID.x % 64u));
}}
KERNEL(barriers, 64, OUT(uint, y)) {{
  SHARED(uint, kept, 64);
  kept[TID.x] = TID.x;
  BARRIER();
  const uint other = kept[TID.x ^ 32u];
  BARRIER();
  kept[TID.x] = other;
  if (WARP == 0)
    WARP_SYNC();
  y[TID.x] = WARP == 0 ? kept[TID.x ^ 1u] : other;
}}
KERNEL(copies, 32, IN(uint, x), OUT(uint, y)) {{
  SHARED(uint, kept, 256);
  SHP(uint) const own = kept + 4 * TID.x;
  copy_async(own, x + 4 * TID.x, 16);
  copies_end();
  copy_async(own + 128, x + 4 * TID.x, 8);
  copies_end();
  COPIES_LEFT(1);
  for (uint i = 0; i < 4; i++)
    y[4 * TID.x + i] = own[i];
  COPIES_LEFT(0);
  for (uint i = 0; i < 4; i++)
    y[128 + 4 * TID.x + i] = own[128 + i];
}}
KERNEL(matrices, 32, IN(uint, x), OUT(uint, y)) {{
  SHARED(uint, kept, 128);
  for (uint i = 0; i < 4; i++)
    kept[4 * LANE + i] = x[4 * LANE + i];
  WARP_SYNC();
  const Words4 plain = load_matrices(kept + 4 * LANE), turned = load_turned(kept + 4 * LANE);
  for (uint i = 0; i < 4; i++) {{
    y[4 * LANE + i] = plain.at[i];
    y[128 + 4 * LANE + i] = turned.at[i];
  }}
}}
#define PRODUCT(name, multiply) \\
  KERNEL(name, 32, IN(uint, a), IN(uint, b), OUT(float, c)) {{ \\
    Words4 left; \\
    Quad sums = {{{{1.0f, 2.0f, 3.0f, 4.0f}}}}; \\
    for (uint i = 0; i < 4; i++) \\
      left.at[i] = a[4 * LANE + i]; \\
    sums = multiply(sums, left, b[2 * LANE], b[2 * LANE + 1]); \\
    for (uint i = 0; i < 4; i++) \\
      c[4 * LANE + i] = sums.at[i]; \\
  }}
PRODUCT(product_bf16, mma_bf16)
PRODUCT(product_tf32, mma_tf32)
KERNEL(rounded, 32, IN(uint, x), OUT(uint, y)) {{
  y[LANE] = round_tf32(x[LANE]);
}}
"""


class Bench:
    """The probes behind a prelude."""

    def __init__(self, prelude: str) -> None:
        self.driver = HostDriver(prelude=prelude)
        self.driver.load("probes", prelude_text("cuda") + TEXT)

    def run(
        self,
        kernel: str,
        inputs: Sequence[bytes],
        made: Sequence[int],
        *args: bytes,
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: int = 32,
        inout: bytes = b"",
    ) -> list[bytes]:
        """What a kernel leaves in memory that it writes: so many bytes each."""
        places = [filled(self.driver, data) for data in (*inputs, *([inout] if inout else []))]
        out = [filled(self.driver, bytes(n)) for n in made]
        self.driver.launch(Ready("probes", kernel, grid, threads, (*places, *out, *args)))
        read = [*([(places[-1], len(inout))] if inout else []), *zip(out, made, strict=True)]
        return [content(self.driver, place, nbytes) for place, nbytes in read]


def word(x: float) -> int:
    """The bits of a float32."""
    return int(struct.unpack("I", struct.pack("f", x))[0])


def half(x: float) -> int:
    """The bits of a bfloat16 that holds the number."""
    return word(x) >> 16


def maths(bench: Bench) -> bool:
    """Every function of one and of two numbers."""
    total = 32 * (len(MATHS) + len(OF_TWO))
    found, negative = (
        struct.unpack(f"{total}f", data)
        for data in bench.run("maths", [struct.pack("32f", *NUMBERS)], [4 * total, 4 * total])
    )
    wanted: list[float] = [f(x) for f in MATHS.values() for x in NUMBERS]
    wanted += [f(x, 1.75) for f in OF_TWO.values() for x in NUMBERS]
    below = [f(-x) if name in _SIGNED else 0.0 for name, f in MATHS.items() for x in NUMBERS] + [
        0.0
    ] * (32 * len(OF_TWO))
    pairs = zip((*found, *negative), (*wanted, *below), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs)


def bits(bench: Bench) -> bool:
    """Functions whose bits are known."""
    exact = 1.0 + 2.0**-12  # whose square float32 rounds
    given = struct.pack("8f", -2.5, exact, exact * exact, -0.0, 0, 0, 0, 0)
    pair = struct.pack("if", 3, 0.25)
    (data,) = bench.run("bits", [given], [44], pair)
    square = struct.unpack("f", struct.pack("f", exact * exact))[0]
    numbers = [-2.5, math.tau, exact * exact - square, 0.0, -2.5]
    words = [word(x) for x in numbers]
    words[3] = 0  # the sign is gone
    words += [0x89ABCDEF * 0xFEDCBA98 >> 32, 0x7F800000, 0x7FFFFFFF, word(3.25), 9, 1]
    return struct.unpack("11I", data) == tuple(words)


def warps(bench: Bench) -> bool:
    """Words of other lanes."""
    (data,) = bench.run("warps", [], [768], threads=64)
    wanted = [word(3.5 * (i // 32 * 32 + (i + 5) % 32)) for i in range(64)]
    wanted += [word(3.5 * (i ^ 9)) for i in range(64)] + [7 * (i ^ 18) for i in range(64)]
    return struct.unpack("192I", data) == tuple(wanted)


def places(bench: Bench) -> bool:
    """Where a thread is."""
    (data,) = bench.run("places", [], [4 * len(_ALL_PLACES)], grid=(2, 3, 2), threads=64)
    wanted = [
        i % 64 + 1000 * (i // 64 % 2) + 10000 * (i // 128 % 3) + 100000 * (i // 384)
        for i in _ALL_PLACES
    ]
    return struct.unpack(f"{len(wanted)}I", data) == tuple(wanted)


def atomics(bench: Bench) -> bool:
    """One thread claims a place, the largest number stays."""
    changed, data = bench.run("atomics", [], [256], threads=64, inout=struct.pack("2i", 0, 5))
    claims = struct.unpack("64i", data)
    owner, largest = struct.unpack("2i", changed)
    return sum(claims) == 1 and claims[owner - 1] == 1 and largest == 63


def barriers(bench: Bench) -> bool:
    """Threads of a block wait for each other, and lanes of one warp alone."""
    (data,) = bench.run("barriers", [], [256], threads=64)
    wanted = [(i ^ 33) if i < 32 else i ^ 32 for i in range(64)]
    return struct.unpack("64I", data) == tuple(wanted)


def copies(bench: Bench) -> bool:
    """Groups of copies arrive in order, and what is not copied is 0."""
    (data,) = bench.run("copies", [struct.pack("128I", *range(1, 129))], [1024])
    wanted = [*range(1, 129), *(i + 1 if i % 4 < 2 else 0 for i in range(128))]
    return struct.unpack("256I", data) == tuple(wanted)


def matrices(bench: Bench) -> bool:
    """Element (r, c) of matrix j is the half 64 j + 8 r + c."""
    (data,) = bench.run("matrices", [struct.pack("256H", *range(256))], [1024])
    plain, turned = [], []
    for lane in range(32):
        for j in range(4):
            low = 64 * j + 8 * (lane // 4) + 2 * (lane % 4)
            plain.append(low | (low + 1) << 16)
            low = 64 * j + 8 * (2 * (lane % 4)) + lane // 4
            turned.append(low | (low + 8) << 16)
    return struct.unpack("256I", data) == (*plain, *turned)


def product_bf16(bench: Bench) -> bool:
    """Words hold two numbers of k; lanes hold them as the PTX manual has m16n8k16."""
    a, b = _factors(16)
    left = [
        half(a[row][k]) | half(a[row][k + 1]) << 16
        for lane in range(32)
        for row, k in _of_a(lane, 2)
    ]
    right = [
        half(b[k][column]) | half(b[k + 1][column]) << 16
        for lane in range(32)
        for k, column in _of_b(lane, 2)
    ]
    return _multiplied(bench, "product_bf16", left, right, a, b)


def product_tf32(bench: Bench) -> bool:
    """Lanes hold them as the PTX manual has m16n8k8."""
    a, b = _factors(8)
    left = [word(a[row][k]) for lane in range(32) for row, k in _of_a(lane, 1)]
    right = [word(b[k][column]) for lane in range(32) for k, column in _of_b(lane, 1)]
    return _multiplied(bench, "product_tf32", left, right, a, b)


def _factors(depth: int) -> tuple[list[list[float]], list[list[float]]]:
    rng = random.Random(depth)
    a = [[float(rng.randrange(-9, 9)) for _ in range(depth)] for _ in range(16)]
    b = [[float(rng.randrange(-9, 9)) for _ in range(8)] for _ in range(depth)]
    return a, b


def _of_a(lane: int, each: int) -> Iterator[tuple[int, int]]:
    """Rows and first k of the four words of a that a lane holds, `each` numbers in a word."""
    for i in range(4):
        yield lane // 4 + i % 2 * 8, (lane % 4 + i // 2 * 4) * each


def _of_b(lane: int, each: int) -> Iterator[tuple[int, int]]:
    for i in range(2):
        yield (lane % 4 + i * 4) * each, lane // 4


def _multiplied(
    bench: Bench,
    kernel: str,
    left: Sequence[int],
    right: Sequence[int],
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
) -> bool:
    given = [struct.pack("128I", *left), struct.pack("64I", *right)]
    (data,) = bench.run(kernel, given, [512])
    wanted = [
        i + 1 + sum(x * y for x, y in zip(a[row], (line[column] for line in b), strict=True))
        for lane in range(32)
        for i in range(4)
        for row, column in [(lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2)]
    ]
    return struct.unpack("128f", data) == tuple(wanted)


def rounded(bench: Bench) -> bool:
    """To 10 bits behind the first, halves away from 0."""
    given = [word(1.0) + i * 0x700 for i in range(32)]
    (data,) = bench.run("rounded", [struct.pack("32I", *given)], [128])
    return struct.unpack("32I", data) == tuple(x + 0x1000 & 0xFFFFE000 for x in given)


PROBES = (
    maths,
    bits,
    warps,
    places,
    atomics,
    barriers,
    copies,
    matrices,
    product_bf16,
    product_tf32,
    rounded,
)


def complaints(prelude: str) -> list[str]:
    """What the probes find wrong with a prelude."""
    try:
        bench = Bench(prelude)
    except DeviceError as error:
        return [error.message]
    found = []
    for probe in PROBES:
        try:
            if not probe(bench):
                found.append(f"{probe.__name__}: other numbers")
        except DeviceError as error:
            found.append(f"{probe.__name__}: {error.message}")
    return found
