"""How many Python functions an eager call goes through: views that change nothing cost as much."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.device import scope

X = engine.tensor([[1.0, 2.0, 3.0]], requires_grad=True)


def frames(call: Callable[[], object]) -> int:
    """Python functions entered within gradcli, in a call that was made before."""
    call()
    count = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and "gradcli" in frame.f_code.co_filename

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


CALLS: dict[str, tuple[Callable[[], object], int]] = {
    "softmax": (lambda: X.softmax(-1), 50),
    "tanh": (lambda: X.tanh(), 35),
    "mul": (lambda: X * X, 45),
    "sum": (lambda: X.sum(), 60),
    "softmax and back": (lambda: X.softmax(-1).backward(X.detach()), 150),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_through_few_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "devices", [])  # of other tests
    call, most = CALLS[name]
    assert frames(call) <= most
