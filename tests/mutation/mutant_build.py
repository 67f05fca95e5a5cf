"""Builds mutants of the CPU's kernels: of one instruction set, and only what the file is part of.

An object is kept under a hash of all text that went into it, so that a mutant costs the compilation
of what includes its file, and linking. What is built is not optimised: that is four times as quick.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import runpy
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAIN = runpy.run_path(str(ROOT / "gradcli" / "engine" / "device" / "build.py"))
BUILDS = "gradcli/csrc/cpu/builds"
# What a processor's kernels are compiled from; the tables of the last take others' too.
PARTS = {"avx512bf16": ("avx512bf16", "avx512")}
SANITIZERS = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include "([^"]+)"', re.MULTILINE)
MODULE = "gradcli_cpu_module.c"  # what cffi makes of call.h
SECONDS = 600  # for one compilation on a busy machine


class NoValidCError(Exception):
    """The compiler refuses a mutant."""


def parts(isa: str) -> list[str]:
    """The C files that are compiled with a mutant: not those of other instruction sets."""
    own = tuple(f"{BUILDS}/{name}/" for name in PARTS.get(isa, (isa,)))
    return [
        name for name in PLAIN["sources"]() if not name.startswith(BUILDS) or name.startswith(own)
    ]


def files() -> list[str]:
    """All files of C that the kernels are made of, but for the declarations."""
    every = [*PLAIN["sources"](), *PLAIN["headers"]()]
    return sorted(name for name in every if Path(name).name not in ("call.h", "kernels.h"))


@dataclass
class Bench:
    """A copy of the C files where one mutant at a time stands, and the objects of all benches."""

    folder: Path
    objects: Path
    isa: str
    flags: Sequence[str] = ("-O0",)

    def __post_init__(self) -> None:
        self.objects.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / "gradcli" / "csrc", self.folder / "gradcli" / "csrc")
        ffi = PLAIN["builder"](self._flags(MODULE), ())
        with contextlib.redirect_stdout(io.StringIO()):
            ffi.emit_c_code(str(self.folder / MODULE))

    def _flags(self, name: str) -> list[str]:
        """Those of a file: other processors' kernels are compiled once, as no mutant is in them."""
        own = self.flags if name in (*parts(self.isa), MODULE) else ("-O0",)
        return [flag for flag in PLAIN["FLAGS"] if flag not in ("-O3", "-g0")] + [*own]

    def build(self, file: str, text: str, kernels: Path) -> bool:
        """Link the kernels with `text` as this file; False where no object changes."""
        usual, changed = self._objects(file, text)
        self._link([*{**usual, **changed}.values()], kernels)
        return self._differ(usual, changed)

    def changes(self, file: str, text: str) -> bool:
        """Whether `text` as this file makes other machine code."""
        return self._differ(*self._objects(file, text))

    @staticmethod
    def _differ(usual: dict[str, Path], changed: dict[str, Path]) -> bool:
        return any(changed[name].read_bytes() != usual[name].read_bytes() for name in changed)

    def plain(self) -> dict[str, Path]:
        """The objects of the kernels as they are."""
        return {name: self._object(name) for name in (*PLAIN["sources"](), MODULE)}

    def _objects(self, file: str, text: str) -> tuple[dict[str, Path], dict[str, Path]]:
        place, usual = self.folder / file, self.plain()
        before = place.read_text(encoding="utf-8")
        try:
            place.write_text(text, encoding="utf-8")
            return usual, {name: self._object(name) for name in parts(self.isa)}
        finally:
            place.write_text(before, encoding="utf-8")

    def _object(self, name: str) -> Path:
        digest = hashlib.sha256(" ".join(self._flags(name)).encode())
        for part in sorted(self._closure(name)):
            digest.update(part.encode() + (self.folder / part).read_bytes())
        kept = self.objects / f"{Path(name).stem}-{digest.hexdigest()[:24]}.o"
        if not kept.exists():
            fresh = self.folder / kept.name
            self._compile(name, fresh)
            fresh.replace(kept)
        return kept

    def _compile(self, name: str, target: Path) -> None:
        include = ["-Igradcli/csrc", f"-I{sysconfig.get_paths()['include']}"]
        command = [
            "gcc",
            *self._flags(name),
            "-w",
            "-fPIC",
            *include,
            "-c",
            name,
            "-o",
            str(target),
        ]
        answer = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if answer.returncode:
            raise NoValidCError(answer.stderr[:500])

    def _closure(self, name: str) -> set[str]:
        """A file and all that it includes."""
        seen: set[str] = set()
        waiting = [self.folder / name]
        while waiting:
            path = waiting.pop()
            shown = str(path.relative_to(self.folder))
            if shown in seen or not path.exists():
                continue
            seen.add(shown)
            for inner in _INCLUDE.findall(path.read_text(encoding="utf-8")):
                near = (path.parent / inner).resolve()
                waiting.append(near if near.exists() else self.folder / "gradcli/csrc" / inner)
        return seen

    def _link(self, objects: Sequence[Path], kernels: Path) -> None:
        shared = [flag for flag in self.flags if flag.startswith("-fsanitize")]
        command = ["gcc", "-shared", "-pthread", *shared, "-o", str(kernels), *map(str, objects)]
        subprocess.run([*command, "-lm"], check=True, timeout=SECONDS)
