"""What `gradcli doctor --device` tells of a GPU: fit for an issue, so it says all that matters."""

from __future__ import annotations

import time
from typing import Any

from gradcli.cli import output
from gradcli.errors import GradcliError

SHOWN = 20  # differences; the rest is counted


def gpu_report(device: str) -> dict[str, Any]:
    """Every op on the device against the CPU; the kernels are compiled on the way."""
    from gradcli.engine import devicecheck
    from gradcli.engine.device.gpu import opened

    began = time.monotonic()
    found: dict[str, Any] = {"device": device, "ok": False}
    try:
        gpu = opened.device(device)
        assert gpu is not None, "the CPU has its own report"
        found["is"] = gpu.driver.describe()
        report = devicecheck.check_all(device)
    except GradcliError as error:
        return {**found, "problem": error.message}
    return {
        **found,
        "ok": not report.failed,
        "modules": len(gpu.loaded),
        "ops": report.ops,
        "cases": report.cases,
        "failed": [str(one) for one in report.failed],
        "seconds": round(time.monotonic() - began, 1),
    }


def show(report: dict[str, Any]) -> None:
    """The same in lines."""
    output.say(f"{report['device']:<10} {report.get('is', 'not opened')}")
    if "problem" in report:
        output.say(f"{'problem':<10} {report['problem']}")
        return
    output.say(f"{'kernels':<10} {report['modules']} modules compiled")
    failed = report["failed"]
    for line in failed[:SHOWN]:
        output.say(f"{'wrong':<10} {line}")
    if len(failed) > SHOWN:
        output.say(f"{'':<10} and {len(failed) - SHOWN} more; --json lists all")
    verdict = f"{len(failed)} differ from the CPU" if failed else "all as on the CPU"
    output.say(f"{'ops':<10} {report['ops']} in {report['cases']} cases, {verdict}")
    output.say(f"{'took':<10} {report['seconds']} s")
