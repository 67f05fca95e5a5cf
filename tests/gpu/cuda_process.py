"""A process on the stand-in for NVIDIA's driver: `gradcli ...`, `benchmarks ...`, or a case of
cuda_cases.py, engine_cases.py or nccl_cases.py.

Whenever a module is compiled for the device, its host build is made too, and put where the
stand-in looks for it. STANDIN_CUDA_CHECKED=0 leaves the kernels' own checks out.
STANDIN_HOST_FREE says how many bytes of memory the machine itself has free, and STANDIN_CUDA_FREE
how many the GPU says it has: others may take them before we do. STANDIN_SHARE is that of its free
memory above which data stays on the host.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import host_build

from gradcli import free_memory
from gradcli.data import staging
from gradcli.engine.device.gpu import nvrtc
from gradcli.engine.device.gpu.cuda import Cuda
from gradcli.engine.device.gpu.source import prelude_text

_compiled = nvrtc.compiled


def with_host_build(name: str, source: str, architecture: str) -> nvrtc.CompiledModule:
    """What nvrtc.compiled gives, with a host build beside it."""
    folder = Path(os.environ["STANDIN_CUDA_KERNELS"])
    folder.mkdir(parents=True, exist_ok=True)
    made = _compiled(name, source, architecture)
    checked = os.environ.get("STANDIN_CUDA_CHECKED", "1") == "1"
    text = source.removeprefix(prelude_text("cuda"))
    link = folder / f"{nvrtc.source_key(source)}.so"
    fresh = link.with_suffix(f".{os.getpid()}")
    fresh.symlink_to(host_build.module_path(name, text, checked))
    fresh.replace(link)
    return made


def main(kind: str, *rest: str) -> int:
    """Run it."""
    nvrtc.compiled = with_host_build
    free = os.environ.get("STANDIN_HOST_FREE")
    if free:
        free_memory._of_machine = lambda: int(free)
    says = os.environ.get("STANDIN_CUDA_FREE")
    if says:
        Cuda.free_memory = lambda driver: int(says)  # type: ignore[method-assign]
    staging.SHARE = float(os.environ.get("STANDIN_SHARE", staging.SHARE))
    if kind == "case":
        import cuda_cases
        import engine_cases
        import nccl_cases

        cases = {**vars(cuda_cases), **vars(engine_cases), **vars(nccl_cases)}
        cases[rest[0]](*rest[1:])
        return 0
    if kind == "benchmarks":
        from benchmarks import __main__ as benchmarks
        from benchmarks import gpu_checks

        gpu_checks.GRADCLI[1:] = ["-m", "cuda_process", "gradcli"]
        return int(benchmarks.main(list(rest), standalone_mode=False) or 0)
    from gradcli.cli import main as command_line

    return command_line.run(list(rest))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
