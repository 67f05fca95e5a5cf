"""The options that commands share, as decorators; a refusal is one sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import wraps
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradcli.cli import completion, garbage, launchers, output
from gradcli.devices import DEVICES, name_of, parsed
from gradcli.errors import DeviceError, OptionError
from gradcli.numerals import SMALLEST, becomes_zero
from gradcli.wording import quantity

if TYPE_CHECKING:  # imported when a command needs it
    from gradcli.config.room import Room
    from gradcli.config.trained import TrainedRun
    from gradcli.config.trust import Trust

F = TypeVar("F", bound=Callable[..., Any])

MAX_THREADS = 256
UNITS = {
    **{f"{letter}B": 1000**power for power, letter in enumerate(("", "k", "M", "G", "T"))},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}


class _NonEmptyPath(click.Path):
    """A path that is not empty: Path("") is the current folder, which nobody asked for."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The path; a usage error where it is empty, as of a shell's variable that is not set."""
        if value == "":
            self.fail("an empty text names no file or folder", parameter, ctx)
        return super().convert(value, parameter, ctx)


path = _NonEmptyPath(path_type=Path)


class FiniteRange(click.FloatRange):
    """A number in a range; NaN is in none, and infinity is no number to compute with."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or a usage error."""
        number: float = click.FLOAT.convert(value, parameter, ctx)
        if not math.isfinite(number):
            self.fail(f"expected a finite number, got {value}", parameter, ctx)
        if becomes_zero(str(value), number):
            self.fail(
                f"{value} is too small: numbers begin at {SMALLEST}, so it would be 0",
                parameter,
                ctx,
            )
        return float(super().convert(number, parameter, ctx))


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


def _memory(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Bytes; strict, for a size that is read otherwise than it was meant harms."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kMGT]?B|[KMGT]iB)", value)
    size = int(float(match[1]) * UNITS[match[2]]) if match else 0
    if size < 1:
        raise click.BadParameter(
            "a size of memory is a number above 0 with a unit (B, kB, MB, GB, TB, KiB, MiB, GiB "
            f"or TiB), such as 8GB, got {value!r}",
            ctx,
            parameter,
        )
    return size


def _isa(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from gradcli.engine.device import cpu

    before, usable = cpu.isa(), cpu.usable_isas()
    if value not in usable:
        raise click.BadParameter(
            f"this machine has no instruction set '{value}'; it has {', '.join(usable)}",
            ctx,
            parameter,
        )
    cpu.set_isa(value)
    ctx.call_on_close(lambda: cpu.set_isa(before))


def device_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Callback: the engine's name of a device, even an absent one; `metavar` lists the kinds."""
    (kind, colon, index), choice = value.partition(":"), str(parameter.metavar).split("|")
    if kind.lower() not in choice:
        raise click.BadParameter(
            f"'{value}' is not one of {', '.join(choice)}; the second GPU is cuda:1", ctx, parameter
        )
    try:
        return name_of(*parsed(kind.lower() + colon + index, "--device"))
    except OptionError as error:
        raise click.BadParameter(error.message.partition(": ")[2], ctx, parameter) from None


def _device(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.lower() == "auto":
        return _of_rank(next(name for name in ("cuda", "metal", "cpu") if not unavailable(name)))
    name = device_name(ctx, parameter, value)
    reason = unavailable(name)
    if reason:
        raise DeviceError(f"device '{name}' cannot be used: {reason}", notes=("use --device cpu",))
    return name if ":" in value else _of_rank(name)


def _of_rank(kind: str) -> str:
    """The GPU of this rank; the GPUs of a host go to its ranks in order.

    Raises:
        DeviceError: E803, the host has more ranks than GPUs.
    """
    group = launchers.ranks()
    if group is None or kind == "cpu":
        return kind
    indices = range(group.local_size)
    gpus = len(list(takewhile(lambda index: not unavailable(f"{kind}:{index}"), indices)))
    if gpus < group.local_size:
        host = group.members[group.rank].host
        raise DeviceError(
            f"{host} has {quantity(group.local_size, 'rank')} and {quantity(gpus, 'GPU')} "
            f"({kind}), and each rank needs one of its own",
            code="E803",
            notes=(
                f"start {gpus} on this host, or all with --device cpu",
                f"or let ranks share a GPU, or take the one that the launcher lets each see: "
                f"--device {kind}:0",
            ),
        )
    return name_of(kind, group.local_rank)


def unavailable(device: str) -> str:
    """Why `device` cannot compute here; empty where it can."""
    kind, index = parsed(device, "--device")
    if kind == "cuda":
        from gradcli.engine.device.gpu.installed import cuda_unavailable_reason

        return cuda_unavailable_reason(index)
    if kind == "metal":
        from gradcli.engine.device.gpu.installed import metal_unavailable_reason

        return metal_unavailable_reason(index)
    return ""


# Reads as `@options.json`; the order is that of the help.
json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)
# These two are read by main before the command starts.
_debug = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)
color = click.option(
    "--color",
    type=click.Choice(output.COLORS),
    metavar="|".join(output.COLORS),
    expose_value=False,
    help="Colour the output; `auto` asks the terminal and NO_COLOR.  [default: auto]",
)
threads = click.option(
    "--threads",
    metavar="N",
    callback=_threads,
    help="Use N threads; the results are the same for any N.  [default: all cores]",
)
# The command gets the name of a device that exists.
device = click.option(
    "--device",
    metavar="|".join(("auto", *DEVICES)),
    shell_complete=completion.choices("auto", *DEVICES),
    default="auto",
    callback=_device,
    help="Compute on this device; `auto` uses a GPU if there is one, `cuda:1` is the second GPU.  "
    "[default: auto]",
)
# Chosen as long as the command runs, and before the config is read.
isa = click.option(
    "--isa",
    metavar="NAME",
    callback=_isa,
    expose_value=False,
    help="Use the CPU kernels of this instruction set; `gradcli doctor` lists them. Results differ "
    "between them in the last bits.  [default: the fastest]",
)
runs = click.option(
    "--runs",
    type=path,
    default=Path("runs"),
    metavar="DIR",
    help="Folder that holds all runs.  [default: runs]",
)
# The command gets bytes.
memory = click.option(
    "--memory",
    metavar="SIZE",
    callback=_memory,
    help="Memory that the training may use, such as 8GB or 512MiB.",
)
overrides = click.option(
    "-s",
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.keys,
    help="Override a config value, such as optim.lr=3e-4.",
)
no_report = click.option(
    "--no-report", is_flag=True, help="Do not write report.html at the end of the run."
)


def _verify_data(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from gradcli.data.prepared import identity

        identity.verify_data = True
        ctx.call_on_close(identity.trust_identities)


# As long as the command runs.
verify_data = click.option(
    "--verify-data",
    is_flag=True,
    callback=_verify_data,
    expose_value=False,
    help="Hash all data files and prepared data again, even if they look unchanged.",
)
# The command gets a bool, of which `trust` makes who decides.
trust_code = click.option(
    "--trust-code",
    is_flag=True,
    help="Run the config's Python code (`code:`) even if it is new; it can do anything you can.",
)


def basic(function: F) -> F:
    """The options of every command: --color, --debug."""
    return color(_debug(function))


def common(function: F) -> F:
    """The options of every command that computes: --json, --threads, --device, and the basic."""
    return json(basic(threads(device(function))))


def count(
    name: str, metavar: str, help: str, default: int | None = None, least: int = 1
) -> Callable[[F], F]:
    """An option that takes a whole number."""
    ends = "" if default is None else f"  [default: {default}]"
    kind = click.IntRange(min=least)
    return click.option(name, type=kind, default=default, metavar=metavar, help=help + ends)


def with_run(function: Callable[..., Any]) -> Any:
    """Add the options of the argument RUN; the command gets a function that opens it."""

    @wraps(function)
    def command(
        *args: Any,
        run: str,
        runs: Path,
        checkpoint: str | None,
        partial: bool,
        trust_code: bool,
        threads: int | None,
        device: str,
        **keywords: Any,
    ) -> Any:
        def open_run(with_data: bool) -> TrainedRun:
            from gradcli.config.trained import open_trained
            from gradcli.train.published.folder import is_published
            from gradcli.train.run_name import find

            if is_published(Path(run)):
                from gradcli.config.published_model import open_published  # few open one

                compute_on(device, threads)
                trained_run = open_published(Path(run), device)
            else:
                path, which = find(runs, run, checkpoint)
                compute_on(device, threads)
                trained_run = open_trained(
                    path,
                    which,
                    device,
                    partial=partial,
                    with_data=with_data,
                    trust=trust(trust_code),
                )
            for note in trained_run.notes:
                output.say_aside(note)
            return trained_run

        return function(*args, open_run=open_run, **keywords)

    which = click.option(
        "--checkpoint",
        metavar="best|last|STEP",
        shell_complete=completion.checkpoints,
        help="Use this checkpoint; RUN@best is short for --checkpoint best.  "
        "[default: best if the run keeps one, else last]",
    )
    whole = click.option(
        "--partial",
        is_flag=True,
        help="Load only the tensors that fit the model; list the rest.",
    )
    return which(whole(trust_code(runs(common(command)))))


def trust(everything: bool, *, remember: bool = False) -> Trust:
    """Decides on own code and names it on stderr; `remember` it as this user's."""
    from gradcli.config.trust import Trust

    return Trust(everything=everything, remember=remember, say=output.say_aside)


def is_written(ctx: click.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def compute_on(device: str, threads: int | None) -> int:
    """Start the threads, one per core for None; warn if the machine grants fewer.

    A GPU is named on stderr, since `auto` may have picked it.
    """
    if device != "cpu":
        output.say_aside(f"computing on {device}")
    garbage.usual()
    from gradcli.engine.device import cpu

    number = threads or min(cpu.available_threads(), MAX_THREADS)
    granted = cpu.threads() if threads is None else cpu.set_threads(threads)
    if granted < number:
        output.say_aside(
            f"warning: asked for {quantity(number, 'thread')}, the machine grants {granted}"
        )
    return granted


def room(device: str, memory: int | None = None) -> Room:
    """The memory that a training on a device must fit in: what is free, or `memory` if less."""
    from gradcli.config.room import HERE, Room, allowance

    def free() -> int | None:
        from gradcli.engine.device.gpu import opened

        gpu = opened.device(device)
        return None if gpu is None else gpu.driver.free_memory()

    there = HERE if device == "cpu" else Room(f"device '{device}'", free, device=device)
    if memory is None:
        return there
    budget, most = allowance(memory, device), there.free()
    return budget if most is None or memory - budget.process < most else there


def compared_device(what: str) -> Callable[[F], F]:
    """--device: a GPU to be compared with the CPU, whether it is there or not; else "cpu"."""
    return click.option(
        "--device", metavar="|".join(DEVICES), default="cpu", callback=device_name, help=what
    )
