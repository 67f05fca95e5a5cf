"""Spoilt calls of the engine under the address and undefined behaviour sanitizers.

`python -m benchmarks.sanitized --count 100000` prints JSON. tests/mutation/mutate.py makes the
calls, in a copy of the tree; a report of a sanitizer ends its process and counts as wrong.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import copy

FLAGS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def environment() -> dict[str, str]:
    """What a process needs before it loads such kernels."""
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    return {
        "LD_PRELOAD": asan.stdout.strip(),
        # Memory is limited here: the limit of mutate.py would refuse the sanitizer its own.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=3000",
        "PYTHONMALLOC": "malloc",
    }


def main(arguments: list[str]) -> None:
    """Build the copy and print what mutate.py prints there."""
    with tempfile.TemporaryDirectory() as name:
        tree = replace(copy.build(Path(name), *FLAGS), environment=environment())
        sys.stdout.write(tree.python("tests/mutation/mutate.py", "--json", "--free", *arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
