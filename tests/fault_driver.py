"""Let one call to the file system fail in each training, resume, and compare the final weights.

    python tests/fault_driver.py --config configs/penguins.yaml --faults 40

The training that is told to fail ends with a sentence or goes on; what it leaves is resumed, and a
run that had not begun is begun again. Exit 0 when all weights are those of an undisturbed training.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("fsync", "replace", "rename", "unlink", "mkdir", "link", "symlink", "rmdir")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
REFUSED = (3, 4, 7)  # exit codes of a run that could not read, allocate or write
MISSED = 6  # `expect:` of a training that was cut short


def child(fault: int, number: int, folder: str, arguments: list[str]) -> int:
    """Run gradcli where the call `fault` of those below a folder fails with the error `number`.

    The last line on stderr says how many calls there were.
    """
    count = 0

    def failing(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **options: Any) -> Any:
            nonlocal count
            if folder in _path(args[0]):
                count += 1
                if count == fault:
                    raise OSError(number, os.strerror(number), f"{name} {_path(args[0])}")
            return call(*args, **options)

        return checked

    for name in CALLS:
        setattr(os, name, failing(name, getattr(os, name)))
    from gradcli.cli.main import run

    code = run(arguments)
    sys.stderr.write(f"\ncalls {count}\n")
    return code


def _path(file: Any) -> str:
    """Where a file lies: of a number, what it was opened as."""
    if isinstance(file, int):
        return str(Path(f"/proc/self/fd/{file}").readlink())
    return str(os.fspath(file))


def gradcli(folder: str, *arguments: str, fault: int = 0, number: int = 0) -> tuple[int, str, str]:
    """The exit code of a command, its output and its errors."""
    command = [sys.executable, __file__, "--child", str(fault), str(number), folder, *arguments]
    done = subprocess.run(
        [*command, "--runs", folder, "--json"], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def calls(errors: str) -> int:
    """How many calls a child counted."""
    return int(errors.rpartition("calls ")[2])


def weights(outcome: tuple[int, str, str]) -> str:
    code, out, errors = outcome
    if code not in (0, MISSED):
        raise SystemExit(f"exit {code}: {errors}")
    return str(json.loads(out)["weights_sha256"])


def one(config: list[str], fault: int, number: int) -> tuple[str, str]:
    """The final weights of a training with one fault, and what happened to it."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = gradcli(folder, "train", *config, fault=fault, number=number)
        code, _, errors = outcome
        if "Traceback" in errors or code not in (0, MISSED, *REFUSED):
            raise SystemExit(f"fault {fault}: exit {code}: {errors}")
        story = f"call {fault} gave {errno.errorcode[number]}: exit {code}"
        if code in (0, MISSED):
            return weights(outcome), story
        if list(Path(folder).glob("*/*/checkpoints/step-*.safetensors")):
            return weights(gradcli(folder, "resume", "last")), f"{story}, resumed"
        return weights(gradcli(folder, "train", *config)), f"{story}, begun again"


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        fault, number, folder, *arguments = sys.argv[2:]
        return child(int(fault), int(number), folder, arguments)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("-s", "--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    config = [options.config]
    for override in options.overrides:
        config += ["-s", override]
    with tempfile.TemporaryDirectory() as folder:
        whole = gradcli(folder, "train", *config)
    expected, total, equal = weights(whole), calls(whole[2]), 0
    for turn in range(options.faults):
        fault = 1 + turn * total // options.faults
        digest, story = one(config, fault, ERRORS[turn % len(ERRORS)])
        equal += digest == expected
        verdict = "equal" if digest == expected else f"DIFFERENT: {digest}"
        sys.stdout.write(f"{turn + 1:3d}/{options.faults} {story}: {verdict}\n")
    sys.stdout.write(f"{equal} of {options.faults} equal to {expected}; {total} calls\n")
    return 0 if equal == options.faults else 1


if __name__ == "__main__":
    sys.exit(main())
