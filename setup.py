"""Compiles the CPU kernels, ships the configs; all else about the package is in pyproject.toml."""

import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

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
        """Compile the files of one extension side by side."""
        compile_one_after_another = self.compiler.compile

        def compile_side_by_side(sources: list[str], **options: object) -> list[str]:
            with ThreadPoolExecutor(cpu_count() or 1) as pool:
                jobs = [pool.submit(compile_one_after_another, [s], **options) for s in sources]
                return [file for job in jobs for file in job.result()]

        self.compiler.compile = compile_side_by_side
        super().build_extension(ext)


setup(
    cffi_modules=["gradcli/engine/device/build.py:ffibuilder"],
    cmdclass={"build_ext": BuildKernels, "build_py": BuildPackage},
)
