"""What data costs: the first start with it, the second, and another library that reads it.

Every start is a process of its own with ten steps, every first one has an empty cache. Competitors
take turns. The files were just written, so that all find them in memory.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import data_peers
from benchmarks.data_files import CASES, SMALL, SMALL_CASE, STEPS, WAITING, WAITING_CASE
from benchmarks.process import ROOT
from benchmarks.race import Say

TURNS, QUICK_TURNS = 5, 1
PATIENCE = 900.0
WAITING_STEPS, QUICK_WAITING_STEPS, LOGGED = 50, 6, 3
CONFIGS = {
    "mnist_cnn": "configs/mnist_cnn.yaml",
    "shakespeare_gpt": "configs/long/shakespeare_gpt.yaml",
}
TITLES = {
    "first": "first start",
    "first with tables": "first start with tables",
    "second": "second start",
}
LOOK = 0.02  # seconds between two looks at a process
GRADCLI = ("-m", "gradcli")
# As on a machine without the extra `tables`.
WITHOUT_TABLES = (
    "-c",
    "import sys, runpy; sys.modules['pyarrow'] = None; "
    "runpy.run_module('gradcli', run_name='__main__', alter_sys=True)",
)


def data(names: Iterable[str], quick: bool, say: Say) -> dict[str, Any]:
    """A row for each case that is named, or for all; and what a start takes without data."""
    cases = {name: CASES[name] for name in names or CASES}
    sizes = {name: case.quick if quick else case.size for name, case in cases.items()}
    total = sum(sizes[name] * case.bytes_each for name, case in cases.items())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        say(f"  writes about {total / 1e9:.1f} GB of data into {folder}, prepared data beside it")
        rows: dict[str, Any] = {SMALL: {"title": SMALL_CASE.title.format(SMALL_CASE.size)}}
        _write(folder, SMALL, SMALL_CASE.size)
        for name, case in cases.items():
            rows[name] = {"title": case.title.format(f"{sizes[name]:,}")}
            if importlib.util.find_spec(case.needs) is None:
                rows[name]["missing"] = f"{case.needs} is not installed"
            else:
                _write(folder, name, sizes[name])
                rows[name]["bytes"] = _size(folder / name)
        taking = [name for name, row in rows.items() if "missing" not in row]
        times = _in_turns(folder, taking, QUICK_TURNS if quick else TURNS)
        waiting = {} if names else _waiting(folder, quick, say)
    for name, row in rows.items():
        if name in times:
            row |= {"peer": data_peers.TITLES.get(name, ""), **times[name]}
        say(f"  {row['title']}: {sentence(row)}")
    return {"rows": rows, "waiting": waiting}


def sentence(row: Mapping[str, Any]) -> str:
    """A row in one line."""
    if "missing" in row:
        return str(row["missing"])
    parts = []
    for way, title in TITLES.items():
        if way in row:
            figures = row[way]
            parts.append(f"{title} {figures['seconds']:.2f} s, {figures['anonymous_mb']:.0f} MB")
    if "peer_seconds" in row:
        parts.append(f"{row['peer']} {row['peer_seconds']:.2f} s")
    return "; ".join(parts)


def _waiting(folder: Path, quick: bool, say: Say) -> dict[str, float]:
    """By config, the median share of the steps' time in which they waited for data."""
    configs = {name: ROOT / path for name, path in CONFIGS.items()}
    if importlib.util.find_spec(WAITING_CASE.needs) is not None:
        _write(folder, WAITING, WAITING_CASE.quick if quick else WAITING_CASE.size)
        configs[WAITING] = folder / WAITING / "config.yaml"
    medians = {}
    for name, config in configs.items():
        runs = folder / f"waiting {name}"
        words = ("train", str(config), "--runs", str(runs), "--threads", "2", "--no-report")
        count = str(QUICK_WAITING_STEPS if quick else WAITING_STEPS)
        steps = ("-s", f"train.log_every={LOGGED}", "--max-steps", count)
        command = [sys.executable, *GRADCLI, *words, *steps]
        subprocess.run(
            command,
            check=True,
            cwd=ROOT,
            env=_environment(folder),
            timeout=PATIENCE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        [log] = runs.glob("*/*/log.jsonl")
        records = map(json.loads, log.read_text().splitlines())
        shares = [record["wait_data"] for record in records if "wait_data" in record]
        medians[name] = round(statistics.median(shares), 5)
        say(f"  {name}: waits for data {medians[name]:.2%} of its steps' time")
    return medians


def _write(folder: Path, name: str, size: int) -> None:
    command = [sys.executable, "-m", "benchmarks.data_files", str(folder / name), name, str(size)]
    subprocess.run(command, check=True, cwd=ROOT, env=_environment(folder), timeout=PATIENCE)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}


def _in_turns(folder: Path, names: Sequence[str], turns: int) -> dict[str, dict[str, Any]]:
    """Medians of each way of each case; a turn is all of them once.

    One turn more looks at memory, which holds up a process while its pages are counted.
    """
    starts: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in names}
    peers: dict[str, list[float]] = {name: [] for name in names}
    memory = {name: _turn(folder / name, counts_memory=True) for name in names}
    for _ in range(turns):
        for name, ways in starts.items():
            for way, figures in _turn(folder / name).items():
                ways.setdefault(way, []).append(figures)
            if name in data_peers.READERS:
                peers[name].append(_peer(folder, name))
    rows: dict[str, dict[str, Any]] = {}
    for name, ways in starts.items():
        rows[name] = {
            way: _medians(figures) | {"anonymous_mb": memory[name][way]["anonymous_mb"]}
            for way, figures in ways.items()
        }
        if peers[name]:
            rows[name]["peer_seconds"] = round(statistics.median(peers[name]), 4)
    return rows


def _medians(figures: list[dict[str, float]]) -> dict[str, float]:
    keys = figures[0]
    return {key: round(statistics.median(row[key] for row in figures), 4) for key in keys}


def _turn(case: Path, *, counts_memory: bool = False) -> dict[str, dict[str, float]]:
    """The starts of a case: the first of each reader that there is, and a second one."""
    starts, start = {}, partial(_start, case, counts_memory=counts_memory)
    with tempfile.TemporaryDirectory(dir=case.parent) as cache:
        base = WITHOUT_TABLES if (case / "table.csv").exists() else GRADCLI
        starts["first"] = start(base, Path(cache))
        starts["second"] = start(base, Path(cache))
    if base == WITHOUT_TABLES and importlib.util.find_spec("pyarrow") is not None:
        with tempfile.TemporaryDirectory(dir=case.parent) as cache:
            starts["first with tables"] = start(GRADCLI, Path(cache))
    return starts


def _peer(folder: Path, name: str) -> float:
    command = [sys.executable, "-m", "benchmarks.data_peers", name, str(folder / name)]
    answer = subprocess.run(
        command,
        check=True,
        cwd=ROOT,
        env=_environment(folder),
        timeout=PATIENCE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(answer.stdout)


def _start(
    case: Path, program: tuple[str, ...], cache: Path, *, counts_memory: bool
) -> dict[str, float]:
    """Ten steps in a process: seconds to its end and to the last step, or the most memory it held.

    Memory is what its processes have for themselves, not the files that they map.
    """
    with tempfile.TemporaryDirectory(dir=case.parent) as runs:
        words = ("train", str(case / "config.yaml"), "--runs", runs, "--threads", "2")
        command = [sys.executable, *program, *words, "--no-report"]
        with tempfile.TemporaryFile() as errors:
            began = time.perf_counter()
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(cache),
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            last_step, most = 0.0, 0
            while process.poll() is None:
                if time.perf_counter() - began > PATIENCE:
                    process.kill()
                if counts_memory:
                    most = max(most, anonymous(process.pid))
                elif not last_step and _has_step(Path(runs)):
                    last_step = time.perf_counter() - began
                time.sleep(LOOK)
            seconds = time.perf_counter() - began
            if process.returncode:
                errors.seek(0)
                message = errors.read().decode(errors="replace").strip()
                raise ChildProcessError(message[-500:] or f"exit {process.returncode}")
    if counts_memory:
        return {"anonymous_mb": round(most / 1e6, 4)}
    return {"seconds": seconds, "to_last_step": last_step or seconds}


def _has_step(runs: Path) -> bool:
    """Whether the last of the steps stands in the log of the one run."""
    for log in runs.glob("*/*/log.jsonl"):
        lines = log.read_text().splitlines()
        return any(json.loads(line).get("step") == STEPS for line in lines if line.endswith("}"))
    return False


def anonymous(process: int) -> int:
    """Bytes that a process and its children have for themselves; 0 where it is gone."""
    total = 0
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                total += int(line.split()[1]) * 1024
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (OSError, ProcessLookupError):
        return total
    return total + sum(anonymous(int(child)) for child in children)
