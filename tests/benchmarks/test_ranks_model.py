"""The model of a step on ranks, its page, and the reading of logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import ranks, ranks_model, ranks_page, results, targets
from benchmarks.__main__ import CLUSTERS, main
from gradcli import engine
from gradcli.engine.distributed import exact, tree
from gradcli.engine.distributed.group import Alone, Message

SUMS = [
    {"bytes": 1 << 10, "exact_ms": 0.02},
    {"bytes": 1 << 20, "exact_ms": 0.4},
    {"bytes": 1 << 26, "exact_ms": 32.02},
]


def result(**steps: float) -> dict[str, Any]:
    """What is measured of mnist: milliseconds by way, on 2 cores."""
    ms = {
        "1 rank x 1 thread": [4.0],
        "1 rank x 2 threads": [2.0, 2.0, 2.0],
        "2 ranks x 1 thread": [2.5, 9.0, 2.5],
        "4 ranks x 1 thread": [3.8],
        "1 rank x 1 thread, batch / 2": [2.2],
        "1 rank x 1 thread, batch / 4": [1.5],
        **{name: [value] * 3 for name, value in steps.items()},
    }
    row = {"numbers": 1 << 18, "ms": ms}
    return {
        "sums": [{"length": 10, "ms": {"exact": 1.6}, "ratios": {"exact": 1.6, "library": 1.1}}],
        "cores": 2,
        "doctor": {"2": SUMS, "4": SUMS},
        "steps": {"mnist": row, "mnist_cnn": row},
    }


def test_a_step_is_the_share_of_a_rank_and_a_sum() -> None:
    assert ranks_model.step_ms(5.0, 2, 2, 1 << 20, SUMS) == pytest.approx(5.4)
    assert ranks_model.step_ms(2.5, 4, 8, 1 << 26, SUMS) == pytest.approx(2.5 + 32.02)


def test_more_ranks_than_cores_take_turns() -> None:
    assert ranks_model.step_ms(2.5, 4, 2, 1 << 20, SUMS) == pytest.approx(5.4)
    assert ranks_model.step_ms(2.5, 3, 2, 1 << 20, SUMS) == pytest.approx(5.4)


def test_a_sum_lies_between_those_that_were_measured() -> None:
    assert ranks_model.between(SUMS, 100) == 0.02
    assert ranks_model.between(SUMS, 1 << 15) == pytest.approx((0.02 * 0.4) ** 0.5)
    assert ranks_model.between(SUMS, 1 << 27) > 32.02


def test_many_ranks_send_what_the_sum_sends() -> None:
    own = ranks_model.own_ms_per_byte(SUMS)
    assert own == pytest.approx(32 / ((1 << 26) - (1 << 10)))
    assert ranks_model.many_ms(1, 1 << 26, 0.02, own) == 0
    assert ranks_model.many_ms(2, 1 << 20, 0.02, 1e-6) == pytest.approx(0.02 + 1.048576)
    tiny = ranks_model.many_ms(1024, exact.TINY, 0.02, 1e-6)  # doubling
    assert tiny == pytest.approx(10 * (0.02 + 0.065536))
    small = ranks_model.many_ms(1024, exact.SMALL, 0.02, 1e-6)  # halving
    assert small == pytest.approx(20 * 0.02 + 2 * 1023 / 1024 * 4.194304)
    large = ranks_model.many_ms(1024, 2 * exact.SMALL, 0.02, 1e-6)  # slices
    assert large == pytest.approx(2046 * 0.02 + 2 * 1023 / 1024 * 8.388608)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
@pytest.mark.parametrize("nbytes", [exact.TINY, exact.SMALL, 2 * exact.SMALL])
def test_the_model_counts_the_bytes_and_rounds_of_the_sum(size: int, nbytes: int) -> None:
    sent = Sent(size)
    rows = {tree.runs(size, size)[0]: engine.zeros(nbytes // 4).array}
    for step in exact.steps(sent, size, rows, engine.zeros(nbytes // 4).array):
        step()
    assert ranks_model.many_ms(size, nbytes, 1.0, 0.0) == sent.messages
    assert ranks_model.many_ms(size, nbytes, 0.0, 1.0) == pytest.approx(sent.nbytes, rel=0.001)


class Sent(Alone):
    """Rank 0 of some, whose messages are counted and go nowhere."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.members *= size
        self.messages = self.nbytes = 0

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message], what: str) -> None:
        self.messages += len(sends)
        self.nbytes += sum(len(message.memory) for message in sends)


def test_the_first_line_of_a_log_does_not_count() -> None:
    log = [
        {"event": "step", "step": 1, "seconds": 5.0},
        {"event": "step", "step": 50, "seconds": 6.0},
        {"event": "eval", "step": 60, "seconds": 7.0},
        {"event": "step", "step": 100, "seconds": 7.0},
        {"event": "step", "step": 150, "seconds": 8.5},
        {"event": "step", "step": 200, "seconds": 9.5},
    ]
    assert ranks.milliseconds(log) == pytest.approx(20.0)


def test_each_figure_of_ranks_has_its_verdict() -> None:
    verdicts = targets.of_ranks(result())
    assert [verdict.passed for verdict in verdicts] == [
        False,  # the sum
        True,  # the median of three ratios is 1.25
        True,  # predicted: 2.2 + 0.4
        True,  # 1.5 + 1.5 + 0.4
        False,  # mnist_cnn may take 1.05 times as long
        True,
        True,
    ]
    slow = targets.of_ranks(result(**{"4 ranks x 1 thread": 5.0}))
    assert [verdict.passed for verdict in slow[1:4]] == [True, True, False]


def test_a_page_says_what_is_predicted(tmp_path: Path) -> None:
    results.write(tmp_path, results.document("ranks", result(), quick=False))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{ranks_page.BEGIN}\nold\n{ranks_page.END}\nafter\n")
    done = CliRunner().invoke(
        main, ["--out", str(tmp_path), "ranks", "--predict", "--page", str(page)]
    )
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.startswith(f"before\n{ranks_page.BEGIN}\n\n**Predicted, not measured**")
    assert text.endswith(f"{ranks_page.END}\nafter\n")
    lines = text.splitlines()
    # 4 ms, 20 messages of 20 us, 1023 / 1024 of 2 MiB at 0.8 + 0.477 ns a byte, or 0.08 + 0.477.
    assert any(line.startswith("| 1,024 | 7.08 (43%) | 5.57 (28%) |") for line in lines)
    assert "| mnist | 2 | 2.60 | 2.50 | +4% |" in lines
    assert "| mnist | 4 | 3.40 | 3.80 | -11% |" in lines


def test_the_page_of_clusters_follows_from_the_newest_result(tmp_path: Path) -> None:
    page = tmp_path / "clusters.md"
    page.write_text(CLUSTERS.read_text())
    ranks_page.update(page, results.FOLDER)
    assert page.read_text() == CLUSTERS.read_text(), "python -m benchmarks ranks --predict"


@pytest.mark.parametrize(
    ("package", "launcher", "sentence"),
    [(None, "mpirun", "mpi4py is not installed: "), (object(), None, "there is no mpirun: ")],
)
def test_without_mpi_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, package: Any, launcher: Any, sentence: str
) -> None:
    monkeypatch.setattr("benchmarks.process.two_processors", list)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    monkeypatch.setattr("shutil.which", lambda name: launcher)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    done = CliRunner().invoke(main, ["ranks"])
    assert done.exit_code == 1
    assert done.output == f"Error: {sentence}{ranks.CURE}\n"
