"""The tables of docs/performance.md, from the newest result files, between two markers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import gpu_tables, grow_ratios, op_cases, op_ratios, results
from benchmarks.markdown import as_times, ms, number, table
from benchmarks.targets import (
    AGAINST_JAX,
    AGAINST_TORCH,
    GENERATION,
    MATMUL_EACH,
    MATMUL_MEAN,
    OUR_GENERATION,
    PRODUCT_WAYS,
    TORCH_GENERATION,
    compare_products,
    noisy,
    product_mean,
)

BEGIN = "<!-- tables: python -m benchmarks table -->"
END = "<!-- end of tables -->"
INTRODUCTION = f"""# Performance

The cost of a training step in gradcli and in its peers. Every figure is a median of interleaved
runs on one machine; compare only figures within one table. `python -m benchmarks all` measures
them again.

{BEGIN}
{END}
"""

PLOTS = "growth.svg"
COLUMNS = (
    "gradcli eager",
    "gradcli captured",
    "gradcli scan",
    "torch eager",
    "torch compile",
    "jax jit",
    "jax scan",
)


def update(page: Path, folder: Path) -> None:
    """Replace what stands between the markers; a page that does not exist is begun."""
    if not page.exists():
        page.write_text(INTRODUCTION, encoding="utf-8")
    page.write_text(between_markers(page, BEGIN, END, tables(folder)), encoding="utf-8")


def between_markers(page: Path, begin: str, end: str, body: str) -> str:
    """The page's text, with `body` between two markers."""
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise ValueError(f"{page} has no markers: it needs the lines '{begin}' and '{end}'")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{body}{end}{after}"


def tables(folder: Path) -> str:
    """All tables whose results are there."""
    parts = []
    for kind in results.KINDS:
        result = results.newest(folder, kind)
        if result is not None:
            parts.append(f"\n{TABLES[kind](result)}\n{where(result)}\n")
    return "".join(parts) + "\n" if parts else "\nNothing has been measured yet.\n\n"


def where(result: Mapping[str, Any]) -> str:
    """On which machine, when, against what."""
    machine = result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in result.get("versions", {}).items() if v)
    memory = f", {machine['memory_gib']:g} GiB" if machine["memory_gib"] else ""
    look = "; a quick look, not a measurement" if result["quick"] else ""
    place = f"{machine['cpu']} ({machine['isa']}), {machine['cores']} processors{memory}"
    return f"*{result['date'][:10]}, {place}" + (f"; {versions}" if versions else "") + f"{look}.*"


def _workloads(result: Mapping[str, Any]) -> str:
    head = ("ms a step", *COLUMNS, "vs torch (limit)", "vs jax (limit)", "one call vs torch")
    rows = []
    for name, entry in result["workloads"].items():
        ratios, times = entry["ratios"], [ms(entry["rows"].get(c)) for c in COLUMNS]
        against = (
            as_times(ratios["torch"], AGAINST_TORCH[name], ratios["torch_doubtful"]),
            as_times(ratios["jax"], AGAINST_JAX.get(name), ratios["jax_doubtful"]),
            as_times(ratios["torch_one_call"]),
        )
        rows.append((f"{name}: {entry['title']}", *times, *against))
    note = (
        "Ratios compare our fastest mode with the peer's. *captured*: one Python call per step; "
        "*scan*: many steps in one call. \\*: too few undisturbed times, or losses differ.\n"
    )
    between = result.get("python_between_us")
    if between is not None:
        note += f"Python takes {number(between)} microseconds between two captured steps (W8).\n"
    return f"## Training steps\n\n{table(head, rows)}\n{note}"


def _matmul(result: Mapping[str, Any]) -> str:
    names = ("gradcli c", "gradcli captured", "gradcli eager", "torch", "numpy")
    rows = []
    for shape, entry in result["shapes"].items():
        rates = (entry["rows"].get(name, {}).get("gflops") for name in names)
        cells = ("-" if rate is None else number(rate) for rate in rates)
        rows.append((shape, *cells, *map(as_times, compare_products(entry["rows"]).values())))
    head = ("GFLOP/s", *names, *(f"{what} vs the better peer" for what in PRODUCT_WAYS))
    means = (f"{what} {as_times(product_mean(result, what), MATMUL_MEAN)}" for what in PRODUCT_WAYS)
    note = (
        f"Geometric means (limit): {', '.join(means)}; the limit of a shape is {MATMUL_EACH:g}. "
        "*The kernel* (gradcli c) runs through `gc_run` without Python, as inside a larger step; "
        "the peers are called from Python. *One captured call* takes both matrices as arguments.\n"
    )
    return f"## Matrix products\n\n{table(head, rows)}\n{note}"


def _generation(result: Mapping[str, Any]) -> str:
    rows = []
    for batch, entry in result["batches"].items():
        times = (entry["rows"].get(name, {}) for name in (*OUR_GENERATION, *TORCH_GENERATION))
        rates = (f"{int(batch) / row['ms'] * 1e3:,.0f}" if "ms" in row else "-" for row in times)
        doubtful = noisy(entry["rows"], (*OUR_GENERATION, *TORCH_GENERATION))
        ratio, floor = entry["ratios"]["torch"], entry["ratios"]["floor"]
        share = "-" if floor is None else f"{floor:.0%}"
        rows.append((batch, *rates, as_times(ratio, GENERATION[batch], doubtful), share))
    head = ("texts at a time", *OUR_GENERATION, *TORCH_GENERATION, "vs torch (limit)", "of floor")
    note = (
        "Tokens per second, sampled one by one, of a GPT with 6 layers of width 128 and a context "
        "of 256; torch runs an eager loop with a key/value cache. *Of floor*: the time to read "
        "each weight and key once, as a percentage of our time.\n"
    )
    return f"## Generation\n\n{table(head, rows)}\n{note}"


def _memory(result: Mapping[str, Any]) -> str:
    names = COLUMNS[:5]
    rows = []
    for name, entry in result["workloads"].items():
        peaks = (entry.get(peer, {}).get("peak_mib") for peer in names)
        rows.append((name, *("-" if peak is None else f"{peak:.0f}" for peak in peaks)))
    return f"## Peak memory of the process\n\n{table(('MiB', *names), rows)}"


def _startup(result: Mapping[str, Any]) -> str:
    return f"## Start-up\n\n{_seconds(result['rows'])}"


def _mnist97(result: Mapping[str, Any]) -> str:
    title = "From a cold process to 97 % on MNIST"
    return f"## {title}\n\n{_seconds(result['rows'], ('steps', 'accuracy'))}"


def _ranks(result: Mapping[str, Any]) -> str:
    sums = [
        (f"{row['length']:,}", *map(number, row["ms"].values()), f"{row['ratios']['exact']:.2f}")
        for row in result["sums"]
    ]
    ways = list(next(iter(result["steps"].values()))["ms"])
    steps = [
        (name, *(number(median(row["ms"][way])) for way in ways))
        for name, row in result["steps"].items()
    ]
    head = (
        "ms a sum over 2 ranks",
        *result["sums"][0]["ms"],
        "exact / MPI_Allreduce (at most 1.5)",
    )
    verdicts = "; ".join(
        f"{verdict['what']} {verdict['figure']:.3g} "
        f"({verdict['wanted']:g}, {'yes' if verdict['passed'] else 'no'})"
        for verdict in result["verdicts"][len(sums) :]
    )
    return (
        f"## Ranks\n\n{table(head, sums)}\n{table(('ms a step', *ways), steps)}\n"
        f"At most: {verdicts}. [clusters.md](clusters.md) has predictions for more ranks.\n"
    )


def _seconds(rows: Mapping[str, Any], facts: tuple[str, ...] = ()) -> str:
    lines = []
    for name, row in rows.items():
        if "seconds" in row:
            extra = (f"{row[fact]:g}" if fact in row else "-" for fact in facts)
            lines.append((name, f"{row['seconds']:.3f}", f"{row['p10']:.3f}", *extra))
    return table(("seconds", "median", "10th percentile", *facts), lines)


def _configs(result: Mapping[str, Any]) -> str:
    note = (
        "Each config was trained once in a new process. Processor seconds add up all threads; "
        "unlike wall time, they hardly depend on other work on the machine.\n"
    )
    return f"## The configs\n\n{_trainings(result)}\n{note}"


def _text(result: Mapping[str, Any]) -> str:
    rows = result["rows"].items()
    samples = "".join(
        f"\n{name} continues a prompt at temperature {sample['temperature']}:\n\n"
        f"```\n{sample['prompt']}{sample['text']}\n```\n"
        for name, row in rows
        if (sample := row.get("sample"))
    )
    return f"## Models of {result['text']['file']}\n\n{_trainings(result)}{samples}"


def _trainings(result: Mapping[str, Any]) -> str:
    lines = []
    for name, row in result["rows"].items():
        for metric, limit in row.get("expect", {}).items():
            verdict = f"{row['metrics'][metric]:.4g} ({limit}, {'yes' if row['reached'] else 'no'})"
            cost = f"{row['processor_seconds']:,.0f}"
            lines.append((name, f"{metric} {verdict}", f"{row['steps']:,}", cost))
    head = ("config", "reached (limit)", "steps", "processor seconds")
    return table(head, lines)


def _log(result: Mapping[str, Any]) -> str:
    lines = []
    for name, row in result["rows"].items():
        if "missing" in row:
            lines.append((name, "-", "-", "-", "-", row["missing"], "-"))
            continue
        ratio = f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        norm, every = number(row["norm_us"]), str(row["log_every"])
        step, share = number(row["step_ms"]), f"{row['share']:.2%}"
        lines.append((name, step, norm, every, share, ratio, f"{row['cpu']:.3f}"))
    head = (
        *("config", "step, ms", "norm, us", "every ... steps", "of step time"),
        *("with / without", "by processor time"),
    )
    return (
        f"## The norm of the gradients in the log\n\n{table(head, lines)}\nMedians of interleaved "
        "pairs, with their confidence interval. Processor time includes the second thread, which "
        "spins while Python asks for the norm. The average load was "
        f"{result['load']:.1f} runnable processes.\n"
    )


def _data(result: Mapping[str, Any]) -> str:
    lines = []
    for row in result["rows"].values():
        size = f"{row['bytes'] / 1e6:,.0f}" if "bytes" in row else "-"
        if "missing" in row:
            lines.append((row["title"], size, *["-"] * 4, row["missing"]))
            continue
        peer = f"{number(row['peer_seconds'])} ({row['peer']})" if "peer_seconds" in row else "-"
        starts = [_started(row.get(way)) for way in ("first", "first with tables", "second")]
        step = number(row["first"]["to_last_step"])
        lines.append((row["title"], size, *starts, step, peer))
    shares = [f"{name} {share:.2%}" for name, share in result["waiting"].items()]
    waiting = f"Share of step time spent waiting for data: {', '.join(shares)}." if shares else ""
    head = (
        *("data", "MB", "first start", "with `gradcli[tables]`", "second start"),
        *("first: to step 10", "another reader"),
    )
    return (
        f"## Data\n\n{table(head, lines)}\nSeconds of whole processes that train ten steps, "
        "as medians of interleaved runs, and their peak private memory. A first start has an empty "
        "cache. Another reader's time is for reading alone, without its import. "
        f"{waiting}\n"
    )


def _ops(result: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{side * side:,}" for side in op_cases.SIDES)
    return (
        f"## Single calls\n\n{table(op_ratios.HEAD, op_ratios.lines(result))}\ntorch's time "
        f"divided by ours, both eager, on about {sizes} numbers. The code runs in both libraries: "
        "`T` is the library, `F` its nn.functional; backward includes forward.\n"
    )


def _grow(result: Mapping[str, Any]) -> str:
    return (
        f"## Growth\n\n![Time of a step against size]({PLOTS})\n\n"
        f"{table(grow_ratios.HEAD, grow_ratios.lines(result))}\nTraining steps with SGD, ours "
        "captured, torch's eager. *Growth of time over work*: the growth of the time from the last "
        "size but one to the last, divided by the growth of the multiply-adds.\n"
    )


def _started(row: Mapping[str, float] | None) -> str:
    return "-" if row is None else f"{number(row['seconds'])}, {row['anonymous_mb']:.0f} MB"


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "workloads": _workloads,
    "matmul": _matmul,
    "generation": _generation,
    "memory": _memory,
    "startup": _startup,
    "mnist97": _mnist97,
    "ranks": _ranks,
    "log": _log,
    "data": _data,
    "ops": _ops,
    "grow": _grow,
    "configs": _configs,
    "text": _text,
    "gpu-checks": gpu_tables.checks,
    "gpu-kernels": gpu_tables.kernels,
    "gpu-training": gpu_tables.training,
}
