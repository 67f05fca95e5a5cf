"""The engine on a device whose kernels run on the CPU: a fixture for tests of everything above."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host_driver import HostDriver

from gradcli.engine.device.gpu import opened
from gradcli.engine.device.gpu.device import GPU


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[GPU]:
    """`x.to("cuda")` goes to the host build of the kernels."""
    monkeypatch.setattr(opened, "_open", {"cuda": GPU(HostDriver(checked=False))})
    device = opened.device("cuda")
    assert device is not None
    yield device
    device.driver.synchronize()
