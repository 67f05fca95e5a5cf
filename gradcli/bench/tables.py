"""A measurement as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli.wording import quantity

Row = Mapping[str, Any]
BOUNDS = {"compute": " c", "memory": " m", None: ""}
KIB, MIB = 1 << 10, 1 << 20


def of_kernels(found: Row) -> Iterator[str]:
    """The kernels by themselves."""
    yield f"medians; {_where(found)}"
    yield _line(f"{'':<32}", ("ms", "GFLOP/s", "GB/s", "of ceiling"))
    for item in found["items"]:
        yield _line(f"{item['name']:<32}", _figures(item))
    yield from _ceilings(found)


def of_config(found: Row) -> Iterator[str]:
    """The step of a config, its layers, its longest calls, memory, and what they are held to."""
    yield f"{found['config']}: {found['name']}, batch {found['batch']}; {_where(found)}"
    yield from _steps(found)
    if "program" in found:
        yield from _layers(found)
        yield from _calls(found)
    if "why_no_parts" in found:
        yield found["why_no_parts"]
    yield _memory(found["memory"])
    yield from _ceilings(found)


def _where(found: Row) -> str:
    if "is" in found:
        return f"{found['device']}: {found['is']}"
    return f"{found['device']}, {found['instruction_set']}, threads {found['threads']}"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name} {' '.join(f'{cell:>10}' for cell in cells)}".rstrip()


def _steps(found: Row) -> Iterator[str]:
    yield ""
    yield _line(f"{'step':<16}", ("median ms", "from", "to", "samples/s"))
    for name, row in found["steps"].items():
        times = (f"{row[key]:.4f}" for key in ("ms", "low", "high"))
        yield _line(f"{name:<16}", (*times, f"{found['samples_per_second'][name]:,.0f}"))
    for row in (found, found.get("torch", {})):
        yield from (row[key] for key in ("why_not_captured", "why_not_compiled") if row.get(key))
    if "torch" in found:
        yield from _ratios(found["torch"])


def _ratios(torch: Row) -> Iterator[str]:
    for name, ratio in torch["ratios"].items():
        rival = f"{torch['fastest']} (PyTorch {torch['version']})"
        yield f"{name} is {ratio:.2f} times as fast as {rival}"
    losses = torch["first_loss"]
    yield f"first loss {losses['gradcli']:.6f}, in PyTorch {losses['torch']:.6f}"


def _layers(found: Row) -> Iterator[str]:
    yield ""
    heads = ("calls", "forward ms", "backward ms", "GFLOP/s", "GB/s", "of ceiling")
    yield _line(f"{'layer':<28}", heads)
    for row in found["layers"]:
        times = (f"{row[key]:.4f}" if row[key] else "" for key in ("forward_ms", "backward_ms"))
        yield _line(f"{row['name']:<28}", (str(row["calls"]), *times, *_figures(row)[1:]))
    program = found["program"]
    both = (str(program["calls"]), "", f"{program['ms']:.4f}", *_figures(program)[1:])
    yield _line(f"{'all, one after another':<28}", both)


def _calls(found: Row) -> Iterator[str]:
    rows = found["calls"]
    yield ""
    program = found["program"]
    yield (
        f"captured: {quantity(program['calls'], 'call')} in {quantity(program['waves'], 'wave')}, "
        f"of {quantity(program['eager_calls'], 'call')} recorded"
    )
    yield _line(f"{'call':<28}", ("ms", "GFLOP/s", "GB/s", "of ceiling"))
    for row in rows:
        back = ", backward" if row["backward"] else ""
        kernel, _, more = row["kernel"].partition(" ")
        more = f" ({more})" if more else ""
        where = f"  {row['layer']}{back}{more}: {row['shapes']}"
        yield _line(f"{kernel:<28}", _figures(row)) + where


def _figures(row: Row) -> list[str]:
    """Time, rates and share; blank where they mean nothing."""
    rates = ("" if row[key] is None else f"{row[key]:.2f}" for key in ("gflops", "gbs"))
    percent = "" if row["percent"] is None else f"{row['percent']:.0f}%"
    return [f"{row['ms']:.4f}", *rates, percent + BOUNDS[row.get("bound")]]


def _memory(found: Row) -> str:
    parts = [
        ("parameters", "parameters"),
        ("optimizer", "optimizer state"),
        ("arena", "intermediates"),
        ("on_gpu", "all on the device"),
        ("peak_resident", "the process at its peak"),
    ]
    told = ", ".join(f"{name} {_size(found[key])}" for key, name in parts if key in found)
    return f"\nmemory: {told}"


def _ceilings(found: Row) -> Iterator[str]:
    limits = found["ceilings"]
    copies = ", ".join(f"{row['gbs']:.0f} of {_size(row['bytes'])}" for row in limits["copies"])
    yield ""
    if "is" in found:
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
