"""A measurement as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli.table import Column, lines
from gradcli.wording import quantity

Row = Mapping[str, Any]
BOUNDS = {"compute": " c", "memory": " m", None: ""}
KIB, MIB = 1 << 10, 1 << 20
# Of time, rates and share; a narrow terminal goes without rates first.
_FIGURES = (Column(10), Column(10, rank=2), Column(10, rank=3), Column(10, rank=1))
_HEADS = ("ms", "GFLOP/s", "GB/s", "of ceiling")


def of_kernels(results: Row, width: int | None = None) -> Iterator[str]:
    """The kernels by themselves; tables fit the `width` of a terminal."""
    yield f"medians; {_where(results)}"
    rows = [("", *_HEADS), *((item["name"], *_figures(item)) for item in results["items"])]
    yield from lines((Column(32, "label", gap=0), *_FIGURES), rows, width)
    yield from _ceilings(results)


def of_config(results: Row, width: int | None = None) -> Iterator[str]:
    """The step of a config, its layers, its longest calls, its memory, and the ceilings."""
    yield f"{results['config']}: {results['name']}, batch {results['batch']}; {_where(results)}"
    yield from _steps(results, width)
    if "program" in results:
        yield from _layers(results, width)
        yield from _calls(results, width)
    if "why_no_parts" in results:
        yield results["why_no_parts"]
    yield _memory(results["memory"])
    yield from _ceilings(results)


def _where(results: Row) -> str:
    if "is" in results:
        return f"{results['device']}: {results['is']}"
    return f"{results['device']}, {results['instruction_set']}, threads {results['threads']}"


def _steps(results: Row, width: int | None) -> Iterator[str]:
    yield ""
    rows = [("step", "median ms", "from", "to", "samples/s")]
    for name, row in results["steps"].items():
        median, low, high = (f"{row[key]:.4f}" for key in ("ms", "low", "high"))
        rows.append((name, median, low, high, f"{results['samples_per_second'][name]:,.0f}"))
    yield from lines((Column(16, "label", gap=0), *[Column(10)] * 4), rows, width)
    yield from _waiting(results)
    for row in (results, results.get("torch", {})):
        yield from (row[key] for key in ("why_not_captured", "why_not_compiled") if row.get(key))
    if "torch" in results:
        yield from _ratios(results["torch"])


def _waiting(results: Row) -> Iterator[str]:
    """The share of time that the fastest way to run steps waited for data."""
    if results.get("wait_data"):
        name, share = list(results["wait_data"].items())[-1]
        yield f"{name}: waits for data {100 * share:.2g}% of the time"


def _ratios(torch: Row) -> Iterator[str]:
    for name, ratio in torch["ratios"].items():
        rival = f"{torch['fastest']} (PyTorch {torch['version']})"
        yield f"{name} is {ratio:.2f} times as fast as {rival}"
    losses = torch["first_loss"]
    yield f"first loss {losses['gradcli']:.6f}, in PyTorch {losses['torch']:.6f}"


def _layers(results: Row, width: int | None) -> Iterator[str]:
    yield ""
    rows: list[Sequence[str]] = [("layer", "calls", "forward ms", "backward ms", *_HEADS[1:])]
    for row in results["layers"]:
        times = (f"{row[key]:.4f}" if row[key] else "" for key in ("forward_ms", "backward_ms"))
        rows.append((row["name"], str(row["calls"]), *times, *_figures(row)[1:]))
    program = results["program"]
    both = (str(program["calls"]), "", f"{program['ms']:.4f}", *_figures(program)[1:])
    rows.append(("all, one after another", *both))
    columns = (Column(28, "label", gap=0), *[Column(10)] * 3, *_FIGURES[1:])
    yield from lines(columns, rows, width)


def _calls(results: Row, width: int | None) -> Iterator[str]:
    yield ""
    program = results["program"]
    yield (
        f"captured: {quantity(program['calls'], 'call')} in {quantity(program['waves'], 'wave')}, "
        f"of {quantity(program['eager_calls'], 'call')} recorded"
    )
    rows: list[Sequence[str]] = [("call", *_HEADS, "")]
    for row in results["calls"]:
        back = ", backward" if row["backward"] else ""
        kernel, _, more = row["kernel"].partition(" ")
        more = f" ({more})" if more else ""
        where = f"{row['layer']}{back}{more}: {row['shapes']}"
        rows.append((kernel, *_figures(row), where))
    columns = (Column(28, "label", gap=0), *_FIGURES, Column(0, "text", gap=2))
    yield from lines(columns, rows, width)


def _figures(row: Row) -> list[str]:
    """Time, rates and share; blank where they mean nothing."""
    rates = ("" if row[key] is None else f"{row[key]:.2f}" for key in ("gflops", "gbs"))
    percent = "" if row["percent"] is None else f"{row['percent']:.0f}%"
    return [f"{row['ms']:.4f}", *rates, percent + BOUNDS[row.get("bound")]]


def _memory(results: Row) -> str:
    parts = [
        ("parameters", "parameters"),
        ("optimizer", "optimizer state"),
        ("arena", "intermediates"),
        ("on_gpu", "all on the device"),
        ("peak_resident", "the process at its peak"),
    ]
    sizes = ", ".join(f"{name} {_size(results[key])}" for key, name in parts if key in results)
    return f"\nmemory: {sizes}"


def _ceilings(results: Row) -> Iterator[str]:
    limits = results["ceilings"]
    copies = ", ".join(f"{row['gbs']:.0f} of {_size(row['bytes'])}" for row in limits["copies"])
    yield ""
    if "is" in results:
        yield f"ceilings, measured here: {limits['gflops']:.0f} GFLOP/s of our matrix product (c);"
    else:
        yield (
            f"ceilings, measured here with threads {limits['threads']}: "
            f"{limits['gflops']:.0f} GFLOP/s of float32 multiply-adds (c);"
        )
    yield f"GB/s of copies (m), read and written: {copies}"


def _size(nbytes: int) -> str:
    if nbytes < MIB:
        return f"{nbytes / KIB:.0f} KiB"
    return f"{nbytes / MIB:.0f} MiB" if nbytes >= 10 * MIB else f"{nbytes / MIB:.1f} MiB"
