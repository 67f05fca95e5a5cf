"""The commands that look at gradcli itself: ops, gradcheck, doctor."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gradcli.cli import doctor
from gradcli.cli.main import run
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.gpu.driver import Driver
from gradcli.engine.gradcheck import every_op
from gradcli.engine.table import OPS
from gradcli.errors import DeviceError


def json_of(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_ops_lists_every_declared_op(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [row["name"] for row in json_of(["ops"], capsys)["ops"]]
    assert sorted(listed) == [op.name for op in every_op()]
    assert run(["ops"]) == 0
    assert f"{len(listed)} ops" in capsys.readouterr().out


def test_ops_shows_one_op_with_its_slope(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json_of(["ops", "tanh"], capsys)["ops"]
    assert row["gradient"] == "1 - y * y"
    assert row["saves"] == ["y"]
    assert row["family"] == "elementwise"


def test_ops_suggests_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "sigmod"]) == 2
    assert "did you mean 'sigmoid'?" in capsys.readouterr().err


def test_gradcheck_of_named_ops_checks_only_these(capsys: pytest.CaptureFixture[str]) -> None:
    report = json_of(["gradcheck", "tanh", "mul"], capsys)
    assert report["ops"] == 2
    assert report["cases"] > 0
    assert report["failed"] == []


def test_gradcheck_second_order_checks_the_gradients_of_gradients(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gradcheck", "--second-order", "tanh", "argmax"]) == 0
    assert capsys.readouterr().out == "gradcheck --second-order: 1 op, 4 cases, all right\n"
    monkeypatch.setattr(OPS["tanh"], "_double_backward", lambda node, grads: (grads[0] * 2,))
    assert run(["gradcheck", "--second-order", "tanh"]) == 5


def test_the_old_name_of_second_order_works_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gradcheck", "--twice", "tanh"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "gradcheck --second-order: 1 op, 4 cases, all right\n"
    assert printed.err == "warning: DeprecationWarning: --twice is now --second-order\n"


def test_gradcheck_of_an_unknown_op_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gradcheck", "sigmod"]) == 2
    assert "did you mean 'sigmoid'?" in capsys.readouterr().err


def test_a_broken_gradient_is_named_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(OPS["tanh"], "_gradient", lambda grad, *, y: grad)
    assert run(["gradcheck", "tanh"]) == 5
    said = capsys.readouterr().out
    assert "tanh((3, 5)): the gradient of x[" in said
    assert " by backward and " in said
    failure = json_of(["gradcheck", "tanh"], capsys, code=5)["failed"][0]
    assert failure["op"] == "tanh"
    assert failure["input"] == "x"
    assert failure["analytic"] != pytest.approx(failure["numeric"], rel=1e-3)


def test_doctor_tests_every_instruction_set_and_keeps_the_chosen_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = cpu.isa()
    report = json_of(["doctor"], capsys)
    assert report["ok"] is True
    assert "baseline" in report["self_test"]
    assert report["instruction_set"] == before == cpu.isa()
    assert report["devices"]["cpu"] == ""
    assert report["devices"]["cuda"]
    assert report["threads"] >= 1


def test_doctor_shows_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    build = json_of(["doctor"], capsys)["build"]
    assert len(bytes.fromhex(build["source"])) == 32
    assert re.match(r"(gcc|.*clang) \d+\.\d+", build["compiler"], re.IGNORECASE)
    assert "-ffp-contract=off" in build["flags"]
    assert run(["doctor"]) == 0
    line = f"build      {build['compiler']} {build['flags']}, csrc {build['source'][:12]}\n"
    assert line in capsys.readouterr().out


def test_doctor_names_a_wrong_kernel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor.math, "tanh", lambda x: x)
    assert run(["doctor"]) == 4
    assert "tanh(" in capsys.readouterr().out


def test_doctor_says_where_no_compiler_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert run(["doctor"]) == 0
    assert "none found" in capsys.readouterr().out


def test_gradcheck_on_a_device_that_is_not_there_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(index: int) -> Driver:
        raise DeviceError("device 'metal' cannot be used: there is none")

    monkeypatch.setattr(opened, "_open", {})
    monkeypatch.setitem(opened.DRIVERS, "metal", nothing)
    assert run(["gradcheck", "--device", "metal", "tanh"]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("device 'metal' cannot be used") == 1
    assert run(["gradcheck", "--device", "metal", "--second-order", "tanh"]) == 2
