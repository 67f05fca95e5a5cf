"""`gradcli gradcheck`: the declared gradients of every op against numeric ones, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine.devicecheck import Difference
    from gradcli.engine.gradcheck import Failure

EXIT_WRONG = 5


@click.command("gradcheck")
@click.argument("names", nargs=-1, metavar="[OP]...", shell_complete=completion.ops)
@click.option("--second-order", is_flag=True, help="Check second derivatives instead.")
@click.option("--twice", is_flag=True, hidden=True, help="Old name of --second-order.")
@options.compared_device(
    "Compare results and gradients on this GPU with float64 on the CPU instead."
)
@options.json
@options.basic
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    second_order: bool,
    twice: bool,
    device: str,
    as_json: bool,
) -> None:
    """Check the gradient of each OP (default: all) against finite differences in float64."""
    if twice:
        output.say_aside("warning: DeprecationWarning: --twice is now --second-order")
    _check_names(names)
    report, what = _check(names or None, second_order or twice, device)
    if as_json:
        failed = [_as_object(failure) for failure in report.failed]
        output.say_json({"ops": report.ops, "cases": report.cases, "failed": failed})
    else:
        for failure in report.failed:
            output.say(str(failure))
        verdict = f"{len(report.failed)} wrong" if report.failed else "all right"
        output.say(
            f"{what}: {quantity(report.ops, 'op')}, {quantity(report.cases, 'case')}, {verdict}"
        )
    ctx.exit(EXIT_WRONG if report.failed else 0)


def _check(names: tuple[str, ...] | None, second_order: bool, device: str) -> tuple[Any, str]:
    """The report and its title."""
    from gradcli.engine import devicecheck, gradcheck, gradgradcheck

    if device != "cpu":
        if second_order:
            raise ConfigError("--second-order is for the CPU: leave out --device", code="E102")
        return devicecheck.check_all(device, names), f"gradcheck --device {device}"
    if second_order:
        return gradgradcheck.check_all(names), "gradcheck --second-order"
    return gradcheck.check_all(names), "gradcheck"


def _check_names(names: tuple[str, ...]) -> None:
    from gradcli.engine.gradcheck import every_op

    ops = [op.name for op in every_op()]
    for name in names:
        if name not in ops:
            hint = did_you_mean(name, ops, "`gradcli ops` lists them all")
            raise ConfigError(f"no op is called '{name}'; {hint}", code="E102")


def _as_object(failure: Failure | Difference) -> dict[str, Any]:
    from gradcli.engine.gradcheck import Failure

    if not isinstance(failure, Failure):
        return dict(vars(failure))
    # NaN and infinity have no place in JSON; as text they still say what was found.
    numbers = {"analytic": failure.analytic, "numeric": failure.numeric}
    finite = {k: v if abs(v) < float("inf") else str(v) for k, v in numbers.items()}
    location = {"op": failure.op, "sample": str(failure.sample), "input": failure.input}
    return {**location, "element": list(failure.element), **finite}
