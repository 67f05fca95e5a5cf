"""Every config in configs/ and configs/long/, trained to its end: does it reach its `expect:`?"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.process import ROOT
from benchmarks.race import Say
from gradcli.config import load
from gradcli.errors import DataError, ErrorGroup, GradcliError

FOLDER = ROOT / "configs"
EXIT_MISSED = 6
PROMPT = "ROMEO:"
TEMPERATURE = 0.8


def files(long: bool = True) -> dict[str, Path]:
    """The configs by name; with `long` those of an hour's patience too."""
    paths = [*FOLDER.glob("*.yaml"), *(FOLDER.glob("long/*.yaml") if long else ())]
    return {path.stem: path for path in sorted(paths)}


def shipped(configs: Mapping[str, Path], before: Mapping[str, Any], say: Say) -> dict[str, Any]:
    """A row for each config that is chosen, beside the rows of `before` of those that are not."""
    rows = {name: row for name, row in before.get("rows", {}).items() if name in files()}
    for name, path in configs.items():
        rows[name] = row = trained(path)
        say(f"  {name}: {sentence(row)}")
    return {"rows": dict(sorted(rows.items()))}


def sentence(row: Mapping[str, Any]) -> str:
    """A row in one line."""
    if "missing" in row:
        return f"takes no part: {row['missing']}"
    figures = (
        f"{metric} {row['metrics'][metric]:.4f} ({goal})" for metric, goal in row["expect"].items()
    )
    verdict = "reached" if row["reached"] else "MISSED"
    return f"{verdict}: {', '.join(figures)}, {row['steps']} steps, {row['seconds']:.0f} s"


def on_text(configs: Mapping[str, Path], file: Path, say: Say) -> dict[str, Any]:
    """A row for each of these configs of text, trained on another text than its own."""
    rows = {}
    for name, path in configs.items():
        rows[name] = row = trained(path, [f"data.file={file.resolve()}", "train.sample=null"])
        say(f"  {name}: {sentence(row)}")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"text": {"file": file.name, "sha256": digest}, "rows": rows}


def trained(path: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """What a training in a process of its own ended in; why there is none, where data is absent."""
    try:
        config = load(path, changes)
    except GradcliError as error:
        if _without_data(error):
            return {"missing": str(error)}
        raise
    began, processor = time.perf_counter(), _processor_seconds()
    with tempfile.TemporaryDirectory() as runs:
        ending = _train(path, changes, runs)
        times = {
            "seconds": round(time.perf_counter() - began, 1),
            "processor_seconds": round(_processor_seconds() - processor, 1),
        }
        sample = _written_on(runs) if config.facts.input_kind == "index" else {}
    result = json.loads(ending.stdout)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **times,
        "steps": result["steps"],
        "epochs": config.train.epochs,
        "expect": {goal.metric: f"{goal.comparison} {goal.value:g}" for goal in config.expect},
        "metrics": {name: round(value, 5) for name, value in result["metrics"].items()},
        "reached": ending.returncode == 0,
        **sample,
    }


def _train(path: Path, changes: Sequence[str], runs: str) -> subprocess.CompletedProcess[str]:
    settings = [part for change in changes for part in ("-s", change)]
    ending = _command("train", str(path), *settings, "--runs", runs, "--threads", "2")
    if ending.returncode not in (0, EXIT_MISSED):
        raise ChildProcessError(f"{path.name}: {ending.stderr.strip()}")
    return ending


def _written_on(runs: str) -> dict[str, Any]:
    """What the model of a text writes behind a prompt; nothing where the prompt is not its own."""
    how = ("--prompt", PROMPT, "--temperature", str(TEMPERATURE), "--runs", runs)
    ending = _command("predict", "last", *how)
    if ending.returncode:
        return {}
    text = json.loads(ending.stdout)["text"]
    return {"sample": {"prompt": PROMPT, "temperature": TEMPERATURE, "text": text}}


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradcli", *arguments, "--json"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def _processor_seconds() -> float:
    """Of all processes that we started and that have ended: what another's load does not change."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _without_data(error: GradcliError) -> bool:
    inside: Iterable[GradcliError] = error.errors if isinstance(error, ErrorGroup) else (error,)
    return all(isinstance(part, DataError) for part in inside)
