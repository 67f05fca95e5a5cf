"""Builds csrc/ into the extension `gradcli.engine.device._cpu` through cffi, in API mode.

setup.py names `ffibuilder`; nothing imports this file at run time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parents[3]
CSRC = Path("gradcli") / "csrc"

# No -ffast-math: it deletes NaN checks and flushes subnormals in the whole process. Contraction is
# off so that every instruction set rounds where the source says; the two -fno flags only drop errno
# and trap bookkeeping, without which exp and friends do not vectorise; -fwrapv: integers wrap.
FLAGS = [
    "-O3",
    "-std=c11",
    "-pthread",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-g0",  # debug information is most of the library's size
]


def declarations() -> str:
    """The text of call.h, which is plain C declarations, without its guard."""
    lines = (ROOT / CSRC / "call.h").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def sources() -> list[str]:
    """All C files, relative to the project."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / CSRC / "cpu").rglob("*.c"))


def headers() -> list[str]:
    """The CPU's headers, relative to the project: where one changes, all is compiled again."""
    own = (path for path in (ROOT / CSRC).rglob("*.h") if "gpu" not in path.parts)
    return sorted(str(path.relative_to(ROOT)) for path in own)


def source_sha256() -> str:
    """One hash of all these files and their names."""
    digest = hashlib.sha256()
    for name in sorted([*sources(), *headers()]):
        content = (ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


# What the library says of how it was built: three lines. The compiler names itself.
BUILD = """
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif
static const char *gc_build(void) { return %s "\\n" COMPILER "\\n" %s; }
"""


def builder(flags: Sequence[str], link: Sequence[str] = ()) -> cffi.FFI:
    """The extension, compiled with these flags; $CFLAGS comes on top."""
    ffi = cffi.FFI()
    ffi.cdef(declarations() + "const char *gc_build(void);")
    all_flags = " ".join([*flags, *os.environ.get("CFLAGS", "").split()])
    ffi.set_source(
        "gradcli.engine.device._cpu",
        '#include <stdint.h>\n#include "call.h"\n'
        + BUILD % (json.dumps(source_sha256()), json.dumps(all_flags)),
        sources=sources(),
        depends=headers(),
        include_dirs=[str(CSRC)],
        extra_compile_args=list(flags),
        extra_link_args=["-pthread", *link],
        libraries=["m"],
    )
    return ffi


ffibuilder = builder(FLAGS)
