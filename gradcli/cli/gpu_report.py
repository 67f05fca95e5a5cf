"""What `gradcli doctor --device` tells of a GPU: fit for an issue, so it says all that matters."""

from __future__ import annotations

import time
from typing import Any

from gradcli.cli import output
from gradcli.errors import GradcliError
from gradcli.wording import quantity

LABEL = 11  # cells for the label of a row
MOST_LINES = 20  # differences; the rest is counted


def gpu_report(device: str) -> dict[str, Any]:
    """Compare every op and every kernel on the device with the CPU."""
    from gradcli.engine import devicecheck
    from gradcli.engine.device.gpu import opened
    from gradcli.engine.kernelcheck import check

    began = time.monotonic()
    result: dict[str, Any] = {"device": device, "ok": False}
    try:
        gpu = opened.device(device)
        assert gpu is not None, "the CPU has its own report"
        result["is"] = gpu.driver.describe()
        with check.counting(gpu) as launched:
            report = devicecheck.check_all(device)
            calls, wrong = check.check_calls(gpu)
    except GradcliError as error:
        return {**result, "problem": error.message}
    kernels = check.kernels_there(gpu)
    return {
        **result,
        "ok": not report.failed and not wrong,
        "modules": len(gpu.loaded),
        "kernels": len(kernels),
        "never_launched": sorted(kernels - launched),
        "ops": report.ops,
        "cases": report.cases,
        "calls": calls,
        "failed": [*map(str, report.failed), *wrong],
        "seconds": round(time.monotonic() - began, 1),
    }


def show(report: dict[str, Any]) -> None:
    """Print the report as lines."""
    output.say(f"{report['device']:<10} {report.get('is', 'not opened')}", indent=LABEL)
    if "problem" in report:
        output.say(f"{'problem':<10} {report['problem']}", indent=LABEL)
        return
    count = report["kernels"] - len(report["never_launched"])
    kernels = (
        f"launched {count} of {quantity(report['kernels'], 'kernel')} in "
        f"{quantity(report['modules'], 'module')}"
    )
    output.say(f"{'kernels':<10} {kernels}", indent=LABEL)
    failed = report["failed"]
    for line in failed[:MOST_LINES]:
        output.say(f"{'wrong':<10} {line}", indent=LABEL)
    if len(failed) > MOST_LINES:
        output.say(f"{'':<10} and {len(failed) - MOST_LINES} more; --json lists all", indent=LABEL)
    verdict = f"{len(failed)} differ from the CPU" if failed else "all as on the CPU"
    tried = (
        f"{report['ops']} in {quantity(report['cases'], 'case')}, "
        f"{quantity(report['calls'], 'call')} of kernels"
    )
    output.say(f"{'ops':<10} {tried}; {verdict}", indent=LABEL)
    output.say(f"{'took':<10} {report['seconds']} s", indent=LABEL)
