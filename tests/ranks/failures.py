"""Ranks that fail at random moments: how the job ends, what stays, and where a resume arrives.

    python tests/ranks/failures.py --times 20 [kill stop exit raise disk term]

Exit 0 when no job outlived the timeout by 5 s, none left a process, and all resumed runs ended with
the weights of the run that was left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from jobs import Ended, Job, gradcli, is_open_mpi, started

from gradcli.train.checkpoint import newest_valid

TIMEOUT, SLACK = 5, 5  # seconds
DATA = Path(__file__).parents[2] / "datasets" / "mnist"
CONFIG = f"""\
gradcli: 1
name: small
data: {{name: mnist, dir: {json.dumps(str(DATA))}, split: {{train: 2000, val: 100}}}}
model: [flatten, {{linear: 32}}, relu, {{dropout: 0.2}}, {{linear: 10}}]
loss: cross_entropy
optim: {{name: adamw, lr: 1e-3}}
train: {{steps: 2000, batch: 64, micro_batch: 16, checkpoint_every: 50, eval_every: 2000}}
"""
FAULTS = ("kill", "stop", "exit", "raise", "disk", "term")
CHILD = str(Path(__file__).with_name("faulty_rank.py"))
# What MPICH's mpirun exits with; Open MPI has codes of its own where a rank is killed. Where a rank
# leaves by itself, MPICH kills the others, and gives the code of either. They exit with 75 if they
# are the first to see it.
CODES = {
    "kill": (9, 75),
    "stop": (75,),
    "exit": (5, 9, 75),
    "raise": (1,),
    "disk": (7,),
    "term": (75,),
}


class Story(NamedTuple):
    """What became of a job.

    Attributes:
        seconds: from the fault to the end of the job.
        orphans: processes that were still there a second later.
        step: of the newest valid checkpoint; None where there was none.
    """

    ended: Ended
    seconds: float
    orphans: int
    step: int | None


def whole(folder: Path) -> str:
    """The weights of a run of one process that nothing disturbs."""
    (folder / "small.yaml").write_text(CONFIG)
    ended = gradcli(0, "train", "small.yaml", "--runs", "whole", "--json", cwd=folder, timeout=300)
    assert ended.code == 0, ended.err
    return str(json.loads(ended.out)["weights_sha256"])


def disturbed(folder: Path, fault: str, ranks: int, victim: int, delay: float) -> Story:
    """A training in folder/runs that fails `delay` seconds after its first checkpoint."""
    runs = folder / "runs"
    command = ["train", "small.yaml", "--runs", str(runs), "--threads", "1"]
    command += ["-s", f"train.timeout={TIMEOUT}"]
    inside = fault in ("exit", "raise", "disk")
    plain = [CHILD, fault, str(victim), str(delay), str(runs)] if inside else ["-m", "gradcli"]
    with started(ranks, *plain, *command, cwd=folder) as job:
        wait_for_checkpoint(runs, job)
        time.sleep(delay)
        began = time.monotonic()
        strike(job, fault, victim)
        ended = job.end(TIMEOUT + SLACK + 60)
        seconds = time.monotonic() - began
        orphans = len(job.outlives(1))
    saved = sorted(runs.glob("*/*/checkpoints"))
    step = newest_valid(saved[0])[1].meta.step if saved else None
    return Story(ended, seconds, orphans, step)


def wait_for_checkpoint(runs: Path, job: Job) -> None:
    while not list(runs.glob("*/*/checkpoints/step-*.safetensors")):
        assert job.process.poll() is None, job.end().err
        time.sleep(0.005)


def strike(job: Job, fault: str, victim: int) -> None:
    """What comes from outside; the rest the rank does to itself."""
    if fault == "term":
        job.process.send_signal(signal.SIGTERM)
    elif fault in ("kill", "stop"):
        number = signal.SIGKILL if fault == "kill" else signal.SIGSTOP
        os.kill(job.ranks()[victim], number)


def resumed(folder: Path, ranks: int) -> str:
    """The weights at the end of the run, which goes on with so many ranks (0: no launcher)."""
    command = ("resume", "small", "--runs", "runs", "--threads", "1", "--json")
    ended = gradcli(ranks, *command, cwd=folder, timeout=300)
    assert ended.code == 0, ended.err
    return str(json.loads(ended.out)["weights_sha256"])


def faults_of(story: Story, fault: str, victim: int) -> list[str]:
    """What is not as it must be; nothing where all is."""
    code, err = story.ended.code, story.ended.err
    sentences = {
        "stop": [f"nothing from rank {victim} on ", "go on with: gradcli resume "],
        "raise": [f"rank {victim} on ", "planted"],
        "disk": ["rank 0 on ", "No space left on device"],
        "term": ["stopped by SIGTERM after step"],
    }
    late, orphans, step = story.seconds > TIMEOUT + SLACK, story.orphans, story.step
    return [
        *([f"it took {story.seconds:.1f} s"] if late else []),
        *([f"{orphans} processes stayed"] if orphans else []),
        *(["no valid checkpoint"] if step is None else []),
        *([f"exit {code}"] if code not in CODES[fault] and not is_open_mpi() else []),
        *(f"not said: {one}, but {err}" for one in sentences.get(fault, ()) if one not in err),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", default=FAULTS)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, wrong = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as place:
        expected = whole(Path(place))
    for fault in options.faults:
        for number in range(options.times):
            ranks, delay = chance.choice((2, 3)), 0.3 * chance.random()
            victim = 0 if fault == "disk" else chance.randrange(ranks)
            with tempfile.TemporaryDirectory() as place:
                (Path(place) / "small.yaml").write_text(CONFIG)
                story = disturbed(Path(place), fault, ranks, victim, delay)
                again = chance.choice([n for n in (0, 2, 3) if n != ranks])
                faults = faults_of(story, fault, victim)
                faults += [] if resumed(Path(place), again) == expected else ["other weights"]
            wrong += bool(faults)
            said = f"\n{story.ended.err}" if faults else ""
            sys.stdout.write(
                f"{fault} {number + 1}/{options.times}: rank {victim} of {ranks} after {delay:.2f} "
                f"s, checkpoint {story.step}, end after {story.seconds:.1f} s, exit "
                f"{story.ended.code}, resumed on {again}: {', '.join(faults) or 'right'}{said}\n"
            )
            sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
