"""engine.device: a device by name, and a block in which new tensors are made there."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from functools import wraps
from threading import get_ident
from typing import Any, Self, TypeVar, cast

from gradcli.devices import META, name_of, parsed
from gradcli.engine.device import meta, scope
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.scope import Device

F = TypeVar("F", bound=Callable[..., Any])


def device_named(name: str, op: str = "to") -> Device | None:
    """The device of this name, opened; None for the CPU. Errors begin with `op`."""
    return meta.DEVICE if name == META else opened.device(name, op)


class device(str):  # noqa: N801 -- torch's name
    """The name of a device; inside `with device(name):` new tensors are made there.

    New are those of sizes and plain numbers (zeros, rand, tensor, what layers and optimizers begin
    with). Results lie where the tensors lie that an op is given. On "meta" tensors have shapes and
    types and no numbers: see engine/device/meta.py.

    Raises:
        OptionError: no such name.
        DeviceError: on entering, where it cannot be used.
    """

    def __new__(cls, name: str) -> Self:
        """The name as the engine writes it, be the device there or not."""
        return super().__new__(cls, name if name == META else name_of(*parsed(name, "device")))

    def __init__(self, name: str) -> None:
        self._entered: dict[int, list[tuple[Device | None, Token[Device | None]]]] = {}

    @property
    def type(self) -> str:
        """What computes: "cuda" of "cuda:1"."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """Which one of several; None for the first."""
        return int(self.partition(":")[2]) if ":" in self else None

    def __enter__(self) -> Self:
        there = device_named(self, "device")
        self._entered.setdefault(get_ident(), []).append((there, scope.enter(there)))
        return self

    def __exit__(self, *_: object) -> None:
        scope.leave(*self._entered[get_ident()].pop())


def chosen_by_device(function: F) -> F:
    """Run a function that makes tensors where its argument `device` says, whatever else says so."""

    @wraps(function)
    def there(*args: Any, **arguments: Any) -> Any:
        name = arguments.get("device")
        if name is None:
            return function(*args, **arguments)
        with scope.on(device_named(name, function.__name__)):
            return function(*args, **arguments)

    return cast(F, there)
