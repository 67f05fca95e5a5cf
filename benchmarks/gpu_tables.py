"""The tables of what was measured on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.markdown import as_times, ms, number, table


def _where_on_gpu(result: Mapping[str, Any]) -> str:
    gpu = result["gpu"]
    versions = ", ".join(f"{name} {version}" for name, version in gpu["versions"].items())
    without = result.get("torch_missing")
    return f"On {gpu['is']}; {versions}" + (f"; without torch: {without}" if without else "") + "."


def checks(result: Mapping[str, Any]) -> str:
    """What was compared with the CPU, and what a sanitizer found."""
    doctor = result["doctor"]
    lines = [("ops against the CPU", str(doctor.get("missing") or doctor.get("problem", "")))]
    if doctor.get("failed") is not None:
        sentence = f"{doctor['ops']} in {doctor['cases']} cases, {len(doctor['failed'])} differ"
        lines = [("ops against the CPU", sentence)]
    for name, row in result["graph"].items():
        differ = len(row.get("parameters_that_differ", ())) + row.get("losses_that_differ", 0)
        sentence = f"{row.get('steps')} steps, {differ} losses and parameters differ"
        if "python_us" in row:
            sentence += f"; Python takes {row['python_us']:g} of {row['step_us']:g} microseconds"
        lines.append((f"replays of {name}", row.get("missing") or sentence))
    lines += [
        (f"{way}, microseconds a small kernel", number(row["us_per_kernel"]))
        for way, row in result["small_kernels"].items()
        if isinstance(row, dict)
    ]
    sanitizer = result["sanitizer"]
    tools = {"sanitizer": sanitizer} if "missing" in sanitizer else sanitizer
    lines += [
        (name, str(row.get("missing") or f"{row['errors']} errors")) for name, row in tools.items()
    ]
    return f"## Checks of a GPU\n\n{_where_on_gpu(result)}\n\n{table(('what', 'found'), lines)}"


def kernels(result: Mapping[str, Any]) -> str:
    """Bandwidths of kernels, and products."""
    families = result["families"]
    lines = [
        (row["family"], name, number(row["gbs"]), f"{row['share']:.0%}")
        if "gbs" in row
        else (row["family"], name, "-", "-")
        for name, row in families["rows"].items()
    ]
    bandwidth = table(("family", "kernel", "GB/s", "of a copy"), lines)
    names = [f"{whose}{how}" for how in ("", " bf16", " tf32") for whose in ("gradcli", "torch")]
    ratios, products = ("ratio", "ratio_bf16", "ratio_tf32"), []
    for name, case in result["products"].items():
        rates = (case["rows"].get(peer, {}).get("tflops") for peer in names)
        cells = ("-" if rate is None else number(rate) for rate in rates)
        products.append((name, *cells, *(as_times(case.get(ratio)) for ratio in ratios)))
    head = ("TFLOP/s", *names, "vs torch", "vs torch, bf16", "vs torch, tf32")
    return (
        f"## Kernels on a GPU\n\n{_where_on_gpu(result)} A copy of "
        f"{families['numbers']:,} numbers: {number(families['copy_gbs'])} GB/s, "
        f"read and written.\n\n{bandwidth}\n{table(head, products)}"
    )


def training(result: Mapping[str, Any]) -> str:
    """Steps a second."""
    lines = []
    for name, entry in result["workloads"].items():
        off = entry["losses"].get("off_course")
        far = "-" if off is None else f"{off:.1g}"
        for contender, row in entry["rows"].items():
            rates = (row.get(f"{what}_per_second") for what in ("steps", "tokens"))
            cells = ("-" if rate is None else f"{rate:,.0f}" for rate in rates)
            lines.append((name, contender, ms(row), *cells, far if "grad" in contender else ""))
    head = ("model", "", "ms a step", "steps/s", "tokens/s", "losses off the CPU's")
    return f"## Training on a GPU\n\n{_where_on_gpu(result)}\n\n{table(head, lines)}"
