"""The calls that every kernel is tried on, as a fixture; a plugin of the tests that name it."""

from __future__ import annotations

import pytest
from poked_calls import poked_calls

from gradcli.engine.device.gpu import launches
from gradcli.engine.device.gpu.launch import LAUNCHERS
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.halves import halved_calls
from gradcli.engine.kernelcheck.others import other_calls
from gradcli.engine.kernelcheck.samples import sampled_calls

del launches  # imported to fill LAUNCHERS


@pytest.fixture(scope="session")
def calls() -> dict[str, list[CheckedCall]]:
    """All calls of kernels that a GPU has, by kernel."""
    found: dict[str, list[CheckedCall]] = {}
    for some in (sampled_calls(LAUNCHERS.__contains__), other_calls(LAUNCHERS.__contains__)):
        for kernel, listed in some.items():
            found.setdefault(kernel, []).extend(listed)
    # float64 draws other numbers, and never on a GPU
    for kernel in [kernel for kernel in found if FACTS[kernel].draws]:
        found[kernel] = [call for call in found[kernel] if not call.has_float64]
    for listed in found.values():
        listed.extend(halved_calls(listed))
        listed.extend(poked_calls(listed))
    return found
