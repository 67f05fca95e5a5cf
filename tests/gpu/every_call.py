"""The calls that every kernel is tried on, as a fixture; a plugin of the tests that name it."""

from __future__ import annotations

import bounds
import pytest
from calls import Call
from halved_calls import halved_calls
from other_calls import other_calls
from poked_calls import poked_calls
from sampled_calls import sampled_calls

from gradcli.engine.device.gpu import launches
from gradcli.engine.device.gpu.launch import LAUNCHERS

del launches  # imported to fill LAUNCHERS


@pytest.fixture(scope="session")
def calls() -> dict[str, list[Call]]:
    """All calls of kernels that a GPU has, by kernel."""
    found: dict[str, list[Call]] = {}
    for some in (sampled_calls(LAUNCHERS.__contains__), other_calls(LAUNCHERS.__contains__)):
        for kernel, listed in some.items():
            found.setdefault(kernel, []).extend(listed)
    for kernel in bounds.DRAWS & set(found):  # float64 draws other numbers, and never on a GPU
        found[kernel] = [
            call
            for call in found[kernel]
            if all(one.dtype.name != "float64" for one in call.tensors)
        ]
    for listed in found.values():
        listed.extend(halved_calls(listed))
        listed.extend(poked_calls(listed))
    return found
