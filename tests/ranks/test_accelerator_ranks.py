"""Accelerator under mpirun: a script has the bits of one process, and ends where a rank does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from jobs import ROOT, Ended, started

pytestmark = pytest.mark.mpi
SCRIPT = str(ROOT / "examples" / "spirals_on_ranks.py")


def ended(ranks: int, *arguments: str) -> Ended:
    with started(ranks, *arguments, cwd=ROOT) as job:
        return job.end(120)


@cache
def alone() -> str:
    done = ended(0, SCRIPT, "--epochs", "2")
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_example_has_the_bits_of_one_process_with_masks_clipping_and_a_rest(ranks: int) -> None:
    done = ended(ranks, SCRIPT, "--epochs", "2")
    assert done.code == 0, done.err
    assert done.out == alone()
    assert len(done.out.splitlines()[-1]) == len("weights ") + 64


def test_masks_keyed_by_rank_would_be_seen(tmp_path: Path) -> None:
    """The example with a planted fault: ranks draw from where they stand."""
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import runpy\n"
        "from gradcli.train.rank_loader import Passes\n"
        "def enter(self, key, part, epoch, number):\n"
        "    self.newest = part\n"
        "Passes.enter = enter\n"
        f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
    )
    one, two = (ended(ranks, str(planted), "--epochs", "2") for ranks in (0, 2))
    assert one.code == two.code == 0
    assert one.out != two.out


def test_a_rank_that_raises_is_named_and_ends_all(tmp_path: Path) -> None:
    script = tmp_path / "raising.py"
    script.write_text(
        "from gradcli.train.accelerator import Accelerator\n"
        "accelerator = Accelerator()\n"
        "if accelerator.rank == 1:\n"
        "    raise ValueError('no such row')\n"
        "accelerator.wait_for_everyone()\n"
    )
    done = ended(2, str(script))
    assert done.code != 0
    assert "rank 1 on " in done.err and "ValueError: no such row" in done.err
