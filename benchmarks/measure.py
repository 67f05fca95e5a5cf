"""The races: the eight workloads, matrix products, peak memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import course, probe, process, targets
from benchmarks.process import COMPETITORS, PRODUCTS, Child, Failure
from benchmarks.race import Effort, Race, Say

SHAPES = (
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (128, 784, 128),
    (784, 128, 128),
    (128, 128, 10),
    (128, 128, 64),
    (16, 784, 128),
    (256, 784, 512),
    (2048, 128, 512),
    (2048, 512, 128),
)
MEMORY = ("W2", "W5", "W6")
MEMORY_STEPS = 20
BUSY = 0.5
# Ways that are not raced: one chunk takes minutes, and the library's other way is far better.
LEFT_OUT = {
    ("W5", "jax scan"): "left out: convolutions in a loop are slow in jax, 6.7 s a step measured",
}
PEAKS = ("gradcli eager", "gradcli captured", "gradcli scan", "torch eager", "torch compile")


def settled_probe(say: Say) -> probe.Probe:
    """What looks between two chunks; says so where this machine is not at rest."""
    probe_ = probe.new_probe()
    bad = probe_.settle()
    if probe_.reason:
        say(f"no placement probe, so no chunk is dropped for its place: {probe_.reason}")
    elif bad > BUSY:
        say(
            f"this machine is not at rest: {bad:.0%} of its moments are unfit, "
            "a processor being taken or shared"
        )
    return probe_


def placement(probe_: probe.Probe) -> dict[str, Any]:
    """What the probe saw, for the record."""
    sights = sorted(s.nanoseconds for s in probe_.sights if s.nanoseconds < 1e6)
    return {
        "missing": probe_.reason,
        "looks": len(probe_.sights),
        "best_gflops": round(probe_.best, 1),
        "barrier_ns_median": round(sights[len(sights) // 2], 1) if sights else None,
    }


def workloads(
    names: Iterable[str], effort: Effort, only: Iterable[str], say: Say
) -> dict[str, Any]:
    """Time of a training step, by workload and competitor."""
    probe_ = settled_probe(say)
    competitors = {n: c for n, c in COMPETITORS.items() if not only or c.package in only}
    result: dict[str, Any] = {}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            workload = course.WORKLOADS[name]
            say(f"{name}: {workload.title}")
            file = Path(folder) / name
            course.write(workload, file)
            run = Race(probe_, effort, say)
            try:
                run.enter(
                    competitors, {peer: why for (w, peer), why in LEFT_OUT.items() if w == name}
                )
                versions |= run.versions()
                rows = run.run(_builder(name, file))
            finally:
                run.leave()
            ratios = targets.compare(rows)
            result[name] = {"title": workload.title, "gflop": workload.gflop, "rows": rows}
            result[name]["ratios"] = ratios
            say_rows(rows, ratios, say)
    between = targets.python_between(result["W8"]["rows"]) if "W8" in result else None
    return {
        "workloads": result,
        "python_between_us": between,
        "versions": versions,
        "placement": placement(probe_),
    }


def _builder(name: str, file: Path) -> Callable[[Child], int]:
    return lambda child: int(child.ask("build", workload=name, file=str(file)))


def say_rows(rows: dict[str, Any], ratios: dict[str, Any], say: Say) -> None:
    """The times of a race, and how many times faster we are."""
    for name, row in rows.items():
        if "ms" not in row:
            continue
        dropped = ", ".join(f"{n} {why}" for why, n in row["dropped"].items()) or "none"
        text = f"  {name:<17} {row['ms']:>10.4f} ms (p10 {row['p10']:.4f})"
        say(f"{text}, {row['kept']} chunks, dropped: {dropped}{remarks(row)}")
    leads = ", ".join(
        f"{key} {value:.2f}x" for key, value in ratios.items() if value and value is not True
    )
    if leads:
        say(f"  gradcli is faster by: {leads}")


def remarks(row: dict[str, Any]) -> str:
    """What makes a row doubtful."""
    noisy = "; noisy: all chunks counted" if row.get("noisy") else ""
    off = row.get("same_course", True)
    noisy += f"; {row['remark']}" if row.get("remark") else ""
    return noisy + ("" if off else f"; ANOTHER COURSE, losses off by {row['off_course']:.2g}")


def matmul(quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """One product, into memory that is there, against the better of torch and NumPy."""
    probe_ = settled_probe(say)
    run = Race(probe_, Effort(good_chunks=2, seconds=1) if quick else Effort(seconds=12.0), say)
    shapes: dict[str, Any] = {}
    try:
        run.enter({n: c for n, c in PRODUCTS.items() if not only or c.package in only})
        versions = run.versions()
        for m, k, n in SHAPES:
            rows = run.run(_product(m, k, n), trace=0, chunk=0.02)
            for row in rows.values():
                if "ms" in row:
                    row["gflops"] = round(2 * m * k * n / row["ms"] / 1e6, 2)
            shapes[f"{m}x{k}x{n}"] = {"rows": rows}
            rates = ", ".join(f"{n} {r['gflops']:g}" for n, r in rows.items() if "gflops" in r)
            ratios = targets.compare_products(rows).items()
            faster = "".join(f"; {what} {ratio:.2f}x" for what, ratio in ratios if ratio)
            say(f"{m}x{k}x{n}: GFLOP/s: {rates}{faster}")
    finally:
        run.leave()
    return {
        "shapes": shapes,
        "versions": versions,
        "placement": placement(probe_),
    }


def _product(m: int, k: int, n: int) -> Callable[[Child], int]:
    return lambda child: int(child.ask("matmul", m=m, k=k, n=n))


def memory(quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Most memory a fresh process ever holds that imports, builds and trains 20 steps."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in MEMORY[:1] if quick else MEMORY:
            file = Path(folder) / name
            course.write(course.WORKLOADS[name], file)
            result[name] = {}
            for peer in PEAKS:
                competitor = COMPETITORS[peer]
                if only and competitor.package not in only:
                    continue
                row = _peak(competitor, name, file)
                result[name][peer] = row
                say(f"{name} {peer}: " + (row.get("missing") or f"{row['peak_mib']:.0f} MiB"))
    return {"workloads": result}


def _peak(competitor: process.Competitor, workload: str, file: Path) -> dict[str, Any]:
    if competitor.missing():
        return {"missing": competitor.missing()}
    with closing(Child(competitor)) as child:
        try:
            unit = _builder(workload, file)(child)
            child.ask("run", steps=max(MEMORY_STEPS // unit, 1) * unit)
            return {"peak_mib": round(child.ask("peak") / 2**20, 1)}
        except Failure as failure:
            return {"missing": str(failure)}
