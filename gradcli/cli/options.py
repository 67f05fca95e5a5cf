"""The options that commands share, as decorators; what they refuse, they refuse in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradcli.cli import output
from gradcli.devices import DEVICES, parsed, shown
from gradcli.errors import DeviceError, OptionError

if TYPE_CHECKING:  # imported when a command needs it
    from gradcli.config.room import Room

F = TypeVar("F", bound=Callable[..., Any])

MAX_THREADS = 256


def _threads(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        count = int(value)
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_THREADS:
        raise click.BadParameter(
            f"a number of threads is a whole number from 1 to {MAX_THREADS}, got {value}",
            ctx,
            parameter,
        )
    return count


def device_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A callback: the device as the engine writes it, be it there or not; `metavar` lists them."""
    (kind, colon, index), choice = value.partition(":"), str(parameter.metavar).split("|")
    if kind.lower() not in choice:
        raise click.BadParameter(
            f"'{value}' is not one of {', '.join(choice)}; the second GPU is cuda:1", ctx, parameter
        )
    try:
        return shown(*parsed(kind.lower() + colon + index, "--device"))
    except OptionError as error:
        raise click.BadParameter(error.message.partition(": ")[2], ctx, parameter) from None


def _device(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.lower() == "auto":
        return next(name for name in ("cuda", "metal", "cpu") if not why_not(name))
    name = device_name(ctx, parameter, value)
    reason = why_not(name)
    if reason:
        raise DeviceError(f"device '{name}' cannot be used: {reason}", notes=("use --device cpu",))
    return name


def why_not(device: str) -> str:
    """Why `device` cannot compute here; empty where it can."""
    kind, index = parsed(device, "--device")
    if kind == "cuda":
        from gradcli.engine.device.gpu.installed import why_not_cuda

        return why_not_cuda(index)
    if kind == "metal":
        from gradcli.engine.device.gpu.installed import why_not_metal

        return why_not_metal(index)
    return ""


def json(function: F) -> F:
    """--json: one JSON object on stdout."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
    )(function)


def debug(function: F) -> F:
    """--debug: the traceback of an error; read by main before the command starts."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    )(function)


def threads(function: F) -> F:
    """--threads N: None takes all cores."""
    return click.option(
        "--threads",
        metavar="N",
        callback=_threads,
        help="Threads that compute; the result does not depend on it.  [default: all cores]",
    )(function)


def compute_on(device: str, threads: int | None) -> int:
    """Start so many threads, None for one a core; a warning where the machine grants fewer.

    A GPU is named, for `auto` may have chosen it.
    """
    if device != "cpu":
        output.say_aside(f"computing on {device}")
    from gradcli.engine.device import cpu

    wanted = threads or min(cpu.available_threads(), MAX_THREADS)
    granted = cpu.threads() if threads is None else cpu.set_threads(threads)
    if granted < wanted:
        output.say_aside(f"warning: {wanted} threads were asked for, the machine grants {granted}")
    return granted


def room(device: str) -> Room:
    """The memory that a training on a device has to fit in."""
    from gradcli.config.room import HERE, Room

    def free() -> int | None:
        from gradcli.engine.device.gpu import opened

        gpu = opened.device(device)
        return None if gpu is None else gpu.driver.free_memory()

    return HERE if device == "cpu" else Room(f"device '{device}'", free)


def device(function: F) -> F:
    """--device: the command gets the name of a device that exists."""
    return click.option(
        "--device",
        metavar="|".join(("auto", *DEVICES)),
        default="auto",
        callback=_device,
        help="Where to compute; `auto` takes a GPU where one can be used, and says so; `cuda:1` "
        "is the second one.  [default: auto]",
    )(function)


def compared_device(what: str) -> Callable[[F], F]:
    """--device: a GPU to be compared with the CPU, whether it is there or not; else "cpu"."""
    return click.option(
        "--device", metavar="|".join(DEVICES), default="cpu", callback=device_name, help=what
    )


def runs(function: F) -> F:
    """--runs DIR: where runs lie."""
    return click.option(
        "--runs",
        type=click.Path(path_type=Path),
        default=Path("runs"),
        metavar="DIR",
        help="The folder of all runs.  [default: runs]",
    )(function)


def checkpoint(function: F) -> F:
    """--checkpoint and --partial: which weights of a run, and whether all of them must fit."""
    which = click.option(
        "--checkpoint",
        default="last",
        metavar="best|last|STEP",
        help="Which checkpoint.  [default: last]",
    )
    partial = click.option(
        "--partial",
        is_flag=True,
        help="Use the tensors that fit the model, and list what is skipped.",
    )
    return which(partial(function))


def overrides(function: F) -> F:
    """-s KEY=VALUE, any number of times."""
    return click.option(
        "-s",
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a value of the config, such as optim.lr=3e-4.",
    )(function)


def common(function: F) -> F:
    """The options of every command that computes: --json, --debug, --threads, --device."""
    return json(debug(threads(device(function))))
