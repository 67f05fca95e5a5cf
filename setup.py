"""Compiles the CPU kernels, ships the configs; all else about the package is in pyproject.toml.

If $GRADCLI_OBJECTS names a folder, objects are kept there: the same text under the same flags is
compiled once. `CC="ccache gcc"` works as well. $GRADCLI_DEVELOP=1 compiles this machine's best
instruction set alone, and quickly (build.py).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from os import cpu_count
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

# What `gradcli init NAME` writes, and the data that is small enough to come along.
SHIPPED = ("configs/*.yaml", "configs/long/*.yaml", "datasets/penguins/*", "datasets/shakespeare/*")


class BuildPackage(build_py):
    """build_py that takes the shipped configs along; a clone has them where they lie."""

    def run(self) -> None:
        """Copy them into the package that is built."""
        super().run()
        if self.editable_mode:
            return
        for pattern in SHIPPED:
            # Not the program that made the data: pip would compile it into a folder beside.
            for file in sorted(set(Path().glob(pattern)) - set(Path().glob("datasets/*/*.py"))):
                to = Path(self.build_lib, "gradcli", "shipped", file)
                self.mkpath(str(to.parent))
                self.copy_file(str(file), str(to))


class BuildKernels(build_ext):
    """build_ext that says what is missing, and compiles several files at a time."""

    def run(self) -> None:
        """Look for a compiler first."""
        compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
        if not any(shutil.which(name) for name in (compiler, "cc", "gcc", "clang")):
            sys.exit(
                "gradcli: no C compiler was found, and its kernels are compiled on installation; "
                "install gcc 11 or clang 14 or newer (Debian: apt-get install gcc; "
                "macOS: xcode-select --install) and try again"
            )
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Compile the files of one extension side by side, and say how far that is."""
        compile_files = self.compiler.compile
        finished = count(1)

        def compile_in_parallel(sources: list[str], **options: object) -> list[str]:
            def compile_file(source: str) -> list[str]:
                objects = compile_or_copy(self.compiler, compile_files, source, options)
                print(f"kernels: {next(finished)} of {len(sources)} files compiled", flush=True)
                return objects

            with ThreadPoolExecutor(cpu_count() or 1) as pool:
                return [file for objects in pool.map(compile_file, sources) for file in objects]

        self.compiler.compile = compile_in_parallel
        super().build_extension(ext)


def compile_or_copy(
    compiler: Any,
    compile_files: Callable[..., list[str]],
    source: str,
    options: dict[str, Any],
) -> list[str]:
    """The object of one file: a copy of one of $GRADCLI_OBJECTS, or compiled and copied there."""
    folder = os.environ.get("GRADCLI_OBJECTS")
    if not folder:
        return compile_files([source], **options)
    flags = [*(options.get("extra_preargs") or ()), *(options.get("extra_postargs") or ())]
    command = [*compiler.compiler_so, *flags]
    includes = [f"-I{path}" for path in (*options["include_dirs"], *compiler.include_dirs)]
    macros = [f"-D{name}={value}" for name, value in (options.get("macros") or ())]
    text = subprocess.check_output([*command, *macros, *includes, "-E", "-P", source])
    version = subprocess.check_output([command[0], "--version"])
    key = hashlib.sha256("\0".join(command).encode() + version + text).hexdigest()
    object_file = Path(folder, key + ".o")
    [target] = compiler.object_filenames([source], output_dir=options["output_dir"])
    if not object_file.exists():
        compile_files([source], **options)
        Path(folder).mkdir(parents=True, exist_ok=True)
        partial = object_file.with_suffix(f".{os.getpid()}")
        shutil.copyfile(target, partial)
        partial.replace(object_file)
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(object_file, target)
    return [target]


setup(
    cffi_modules=["gradcli/engine/device/build.py:ffibuilder"],
    cmdclass={"build_ext": BuildKernels, "build_py": BuildPackage},
    # cffi compiles against the limited API of Python, so that one wheel serves 3.11 and later.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
