"""MSL text checked without a Mac: two runs of clang, and a look at its tokens.

Apple's compiler runs on no other machine. clang knows address spaces, and C++ for OpenCL has
Metal's rules of memory; tests/standin/metal/declared says what Metal's header declares. What
neither refuses, the tokens show.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

DECLARED = Path(__file__).parents[1] / "standin" / "metal" / "declared"
MOST_BUFFERS = 31  # of a kernel
MOST_SHARED = 32 << 10  # bytes
_WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Wdouble-promotion",
    "-Wshadow",
    "-Wno-unknown-attributes",  # [[kernel]] and the places of ids
    "-Wno-unknown-pragmas",  # #pragma METAL
    "-Wno-ignored-attributes",
    "-Wno-unused-function",  # shared headers serve many modules
    "-Wno-unused-parameter",  # ids that a function has no use for
    "-Werror",
)
_WITHOUT = ("-nostdinc", "-fno-exceptions", "-fno-rtti")
_OPENCL = (
    "-DGC_OPENCL_CHECK",
    "-cl-std=clc++2021",
    "-cl-single-precision-constant",  # as in Metal
    "-triple",
    "spir64",
    "-cl-ext=-all,+__opencl_c_generic_address_space",
)
# Words of MSL that C++ has not; the preludes alone may use them.
_RESERVED = {
    *("kernel", "vertex", "fragment", "device", "constant", "thread", "threadgroup"),
    *("threadgroup_imageblock", "half", "bfloat", "metal", "sampler", "imageblock", "as_type"),
}
_REFUSED = {
    *("long", "double", "goto", "asm", "auto", "virtual", "new", "delete", "throw", "try"),
    *("dynamic_cast", "typeid", "static", "mutable", "volatile", "union", "std", "wchar_t"),
    *("static_cast", "reinterpret_cast", "const_cast"),  # an address space gets lost in them
}
# Functions of the namespace metal, beside which one of ours with that name could not be called.
_OF_METAL = {
    *("abs", "absdiff", "all", "any", "ceil", "clamp", "clz", "copysign", "cos", "cross", "ctz"),
    *("distance", "divide", "dot", "exp", "exp10", "exp2", "fabs", "fdim", "floor", "fma", "fmax"),
    *("fmin", "fmod", "fract", "frexp", "hadd", "isfinite", "isinf", "isnan", "ldexp", "length"),
    *("log", "log10", "log2", "mad24", "madhi", "madsat", "max", "max3", "median3", "min", "min3"),
    *("mix", "modf", "mul24", "mulhi", "normalize", "popcount", "pow", "powr", "reverse_bits"),
    *("rint", "rotate", "round", "rsqrt", "saturate", "select", "sign", "signbit", "sin", "sincos"),
    *("sinh", "smoothstep", "sqrt", "step", "tan", "tanh", "transpose", "trunc"),
}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.]*|[^\s\w]")
_TYPE = r"(?:float|int|uint|i64|uchar|ushort|bool|REAL|FROM|[A-Z]\w*[a-z]\w*(?:<[^<>;()]*>)?)"
_RAW_POINTER = re.compile(rf"(?<!\w){_TYPE}\s*(?:const\s*)?[*&]\s*(?:const\s+)?[A-Za-z_]\w*")
_KERNEL = re.compile(r"\[\[kernel,[^]]*\]\]\s*void\s+(\w+)\(([^{]*?)\)\s*\{")
_ARRAY = re.compile(r"@_ZZ(\d+)(\w+) = internal addrspace\(3\) global (\[.*\])")
_WIDTH = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8}


def clang() -> str:
    """The compiler; empty where there is none."""
    named = os.environ.get("GRADCLI_CLANG", "clang-19")
    return shutil.which(named) or ""


def as_cpp(text: str) -> str:
    """What clang says of a text as C++ with address spaces; empty when it likes it."""
    flags = ("-x", "c++", "-std=c++14", "-fsyntax-only", *_WITHOUT, *_WARNINGS)
    return _run(text, *flags)[1]


def as_opencl(text: str) -> str:
    """What clang says of a text as C++ for OpenCL."""
    return _run(text, "-cc1", "-x", "clcpp", "-fsyntax-only", *_OPENCL, *_WARNINGS)[1]


def kernels(text: str) -> dict[str, int]:
    """The number of buffers of each kernel, after its macros."""
    expanded = _run(text, "-x", "c++", "-E", "-P", "-nostdinc", "-w")[0]
    ids = 6
    return {name: given.count(",") + 1 - ids for name, given in _KERNEL.findall(expanded)}


def shared_bytes(text: str) -> dict[str, int]:
    """The shared memory that each kernel declares."""
    flags = ("-x", "c++", "-std=c++14", "-S", "-emit-llvm", *_WITHOUT, "-w", "-o", "-")
    found: dict[str, int] = {}
    for line in _run(text, *flags)[0].splitlines():
        match = _ARRAY.match(line)
        if match:
            name = match[2][: int(match[1])]
            found[name] = found.get(name, 0) + _array_bytes(match[3])
    return found


def _array_bytes(declared: str) -> int:
    """`[N x float]`, or an array of such."""
    count, _, of = declared.strip("[]").partition(" x ")
    return int(count) * (_array_bytes(of) if " x " in of else _WIDTH[of])


def complaints(text: str) -> list[str]:
    """What the tokens of a module's own text (without the prelude) show to be no MSL."""
    plain = _COMMENT.sub(" ", text)
    return [*_words(plain), *_lambdas(plain), *_pointers(plain), *_methods(plain), *_names(plain)]


def _words(plain: str) -> Iterator[str]:
    shared_with_the_cpu = plain.replace("static inline", "")  # what FN is
    for word in dict.fromkeys(_TOKEN.findall(shared_with_the_cpu)):
        if word in _RESERVED:
            yield f"'{word}' is a word of Metal"
        elif word in _REFUSED:
            yield f"'{word}' is not for kernels"
        elif word.startswith(("__", "simd_", "quad_", "atomic_")) and word != "__VA_ARGS__":
            yield f"'{word}' is no name of the preludes"


def _lambdas(plain: str) -> Iterator[str]:
    if re.search(r"(?<![\w\])\[])\s*\[(?!\[)[^\[\];]*\]\s*[({]", plain):
        yield "a lambda"


def _pointers(plain: str) -> Iterator[str]:
    """Every pointer and reference of MSL says where it points; DEV, SHP and the like do."""
    for found in _RAW_POINTER.findall(plain):
        yield f"'{' '.join(found.split())}' points nowhere: use DEV, SHP or VAL_REF"


def _methods(plain: str) -> Iterator[str]:
    """Methods are for what a thread holds: none can be called on `constant` memory."""
    bodies = {name: _block(plain, at) for name, at in _structs(plain)}
    having = {name for name, body in bodies.items() if re.search(r"\)\s*(const)?\s*\{", body)}
    for _ in bodies:
        having |= {n for n, body in bodies.items() if having & set(_TOKEN.findall(body))}
    for name in re.findall(r"\bVAL(?:_REF)?\((\w+)", plain):
        if name in having:
            yield f"'{name}' has methods, and is passed by VAL or VAL_REF"


def _structs(plain: str) -> Iterator[tuple[str, int]]:
    for found in re.finditer(r"\bstruct\s+(\w+)\s*\{", plain):
        yield found[1], found.end()


def _block(plain: str, begin: int) -> str:
    """What stands between a brace, whose inside begins here, and its other one."""
    depth = 1
    for at in range(begin, len(plain)):
        depth += {"{": 1, "}": -1}.get(plain[at], 0)
        if not depth:
            return plain[begin:at]
    return plain[begin:]


def _names(plain: str) -> Iterator[str]:
    """Functions that Metal has too, and functions that call themselves."""
    calls: dict[str, set[str]] = {}
    pattern = r"\b(?:FN|static inline)\b[^;{}()]*?(NAME\(\w+\)|\w+)\s*\([^;{]*\{"
    for found in re.finditer(pattern, plain):
        name = found[1].removeprefix("NAME(").removesuffix(")")
        if name in _OF_METAL and not found[1].startswith("NAME"):
            yield f"Metal has a function '{name}' itself"
        calls.setdefault(name, set()).update(_TOKEN.findall(_block(plain, found.end())))
    for name in calls:
        if name in _reached(name, calls):
            yield f"'{name}' calls itself"


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    """All functions that one calls, and they, and so on."""
    seen: set[str] = set()
    ahead = [name]
    while ahead:
        fresh = (calls[ahead.pop()] & calls.keys()) - seen
        seen |= fresh
        ahead.extend(fresh)
    return seen


def _run(text: str, *flags: str) -> tuple[str, str]:
    command = [clang(), *flags, f"-I{DECLARED}", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    return done.stdout, said or ("" if not done.returncode else f"clang: {done.returncode}")
