"""Kill `gradcli train` with -9 at random moments, resume, and compare the final weights.

    python tests/kill_driver.py --config configs/mnist.yaml --runs 20 -s train.epochs=1

Every third run is killed a second time while it resumes. Exit 0 when all weights are equal.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def gradcli(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gradcli.cli.main", *arguments, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> dict[str, object]:
    """The JSON object of a command that must succeed; 6 is a missed `expect:` of a short run."""
    out, err = process.communicate()
    if process.returncode not in (0, 6):
        raise SystemExit(f"exit {process.returncode}: {err}")
    return json.loads(out)


def kill_after_checkpoint(process: subprocess.Popen[str], runs: Path, delay: float) -> bool:
    """Kill `delay` seconds after the first checkpoint stands; False if it ended before."""
    while not list(runs.glob("*/*/checkpoints/step-*.safetensors")):
        if process.poll() is not None:
            raise SystemExit(process.communicate()[1])
        time.sleep(0.005)
    time.sleep(delay)
    alive = process.poll() is None
    process.kill()
    process.communicate()
    return alive


def one(number: int, config: list[str], seconds: float, rng: random.Random) -> tuple[str, str]:
    """The final hash of a killed and resumed run, and what was done to it."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        delay = rng.random() * seconds * 0.9
        alive = kill_after_checkpoint(gradcli("train", *config, "--runs", folder), runs, delay)
        story = f"killed after {delay:.2f} s" if alive else f"ended before {delay:.2f} s"
        if number % 3 == 2:
            again = rng.random() * seconds * 0.5
            kill_after_checkpoint(gradcli("resume", "last", "--runs", folder), runs, again)
            story += f", and while resuming after {again:.2f} s"
        final = result(gradcli("resume", "last", "--runs", folder))
        check_logs(runs)
        return str(final["weights_sha256"]), story


def check_logs(runs: Path) -> None:
    """Every line strict JSON, steps unique and rising."""
    for log in runs.glob("*/*/log.jsonl"):
        records = [json.loads(line) for line in log.read_text().splitlines()]
        steps = [record["step"] for record in records if record["event"] == "step"]
        if steps != sorted(set(steps)):
            raise SystemExit(f"{log}: steps do not rise")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-s", "--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    config = [options.config]
    for override in options.overrides:
        config += ["-s", override]
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole = result(gradcli("train", *config, "--runs", folder))
    equal = 0
    for number in range(options.runs):
        digest, story = one(number, config, float(str(whole["seconds"])), rng)
        equal += digest == whole["weights_sha256"]
        verdict = "equal" if digest == whole["weights_sha256"] else f"DIFFERENT: {digest}"
        sys.stdout.write(f"{number + 1:3d}/{options.runs} {story}: {verdict}\n")
    sys.stdout.write(f"{equal} of {options.runs} equal to {whole['weights_sha256']}\n")
    return 0 if equal == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
