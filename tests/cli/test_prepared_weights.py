"""The same weights of one dataset, whichever way it is read, on 1 and 2 threads, and resumed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli
from same_data import MAPPED, MODELS, TABLES, make, shrink, without_pyarrow

__all__ = ["gradcli"]


def sets() -> list[Path]:
    kept = Path("kept")
    return [path for path in kept.iterdir() if path.name != "known"] if kept.exists() else []


@pytest.mark.parametrize("kind", MODELS)
def test_the_weights_are_those_of_data_in_memory(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make(kind)

    def trained(*options: str) -> tuple[object, ...]:
        made = gradcli("train", "it.yaml", "--json", "--no-report", *options)
        assert made.code == 0, made.err
        run = Path(made.json["run"])
        manifest = json.loads((run / "manifest.json").read_text())
        return made.json["weights_sha256"], manifest["data"], made.json["metrics"]

    memory = trained("--threads", "1")
    assert not sets()
    assert trained("--threads", "2") == memory
    shrink(monkeypatch)
    assert trained("--threads", "1") == memory
    prepared = sets()
    assert len(prepared) == (0 if kind in MAPPED else 2 if kind in ("archive", "bpe") else 1)
    assert trained("--threads", "2") == memory
    for threads, step in zip("12121", random.Random(kind).sample(range(1, 12), 5), strict=True):
        stopped = gradcli("train", "it.yaml", "--json", "--no-report", "--max-steps", str(step))
        assert stopped.code == 0, stopped.err
        resumed = gradcli("resume", "last", "--json", "--no-report", "--threads", threads)
        assert resumed.code == 0, resumed.err
        assert resumed.json["weights_sha256"] == memory[0]
    assert sets() == prepared
    if kind in TABLES:
        shutil.rmtree("kept")
        without_pyarrow(monkeypatch)
        assert trained("--threads", "2") == memory
