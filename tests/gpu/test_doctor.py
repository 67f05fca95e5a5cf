"""`gradcli doctor --device`: it launches every kernel that a GPU may load, eagerly and recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from gpu_modules import every_module
from host_driver import HostDriver, HostReplay
from on_host import gpu  # noqa: F401
from register_table import table as register_table

from gradcli.cli import gpu_report
from gradcli.engine import devicecheck
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.device.gpu.driver import Ready
from gradcli.engine.device.gpu.entries import kernels_of
from gradcli.engine.kernelcheck import check
from gradcli.engine.kernelcheck.calls import CheckedCall

FEW = ("matmul", "sort")


@pytest.fixture(scope="module")
def chosen() -> list[CheckedCall]:
    """What doctor chooses of all known calls."""
    return check.chosen_calls(tensor_cores=True)


def of_few_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ops, which test_every_op.py has all of, only a few."""
    whole = devicecheck.check_all
    monkeypatch.setattr(devicecheck, "check_all", lambda device: whole(device, FEW))


def of_calls(monkeypatch: pytest.MonkeyPatch, calls: Sequence[CheckedCall]) -> None:
    """Of the calls these."""
    monkeypatch.setattr(check, "chosen_calls", lambda tensor_cores: calls)


def test_every_kernel_of_the_table_is_launched(
    gpu: GPU,  # noqa: F811
    chosen: list[CheckedCall],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_few_ops(monkeypatch)
    of_calls(monkeypatch, chosen)
    report = gpu_report.gpu_report("cuda")
    assert (report.get("problem"), report["failed"], report["ok"]) == (None, [], True)
    table = set(register_table())
    assert check.kernels_there(gpu) == table
    assert report["never_launched"] == []
    gpu_report.show(report)
    count = len(table)
    assert f"launched {count} of {count} kernels in " in capsys.readouterr().out


def test_the_names_of_all_kernels_are_known_without_a_compiler() -> None:
    names = {kernel for module in every_module() for kernel in kernels_of(module)}
    assert names == set(register_table())


def test_a_kernel_that_is_never_launched_lacks_in_the_count(
    gpu: GPU,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_few_ops(monkeypatch)
    of_calls(monkeypatch, [])
    report = gpu_report.gpu_report("cuda")
    assert 0 < len(report["never_launched"]) < report["kernels"] < len(register_table())
    assert json.loads(json.dumps(report)) == report


def test_a_graph_with_other_bits_is_told(
    gpu: GPU,  # noqa: F811
    chosen: list[CheckedCall],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = HostDriver.record

    def forgetful(driver: HostDriver, listed: Sequence[Ready]) -> HostReplay:
        return whole(driver, listed[:-1])

    some = [call for call in chosen if call.kernel == "add"][:1]
    monkeypatch.setattr(HostDriver, "record", forgetful)
    of_few_ops(monkeypatch)
    of_calls(monkeypatch, some)
    (said,) = gpu_report.gpu_report("cuda")["failed"]
    assert said.startswith("add(")
    assert said.endswith("a recorded graph gives other bits")


def test_a_wrong_number_is_told(
    gpu: GPU,  # noqa: F811
    chosen: list[CheckedCall],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = [call for call in chosen if call.kernel == "sin"][:1]
    monkeypatch.setattr(gpu.driver, "prelude", gpu.driver.prelude.replace("sinf)", "cosf)", 1))  # type: ignore[attr-defined]
    of_few_ops(monkeypatch)
    of_calls(monkeypatch, some)
    (said,) = gpu_report.gpu_report("cuda")["failed"]
    assert said.startswith("sin(")
    assert "element 0 of block 1 is " in said
