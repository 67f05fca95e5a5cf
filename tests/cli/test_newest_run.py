"""`last` is the run that began last, wherever the machines stood that it and others began on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from points import Ended, gradcli

__all__ = ["gradcli"]

Command = Callable[..., Ended]


# Hours to the east of Greenwich have a minus in TZ.
@pytest.mark.parametrize(("first", "second"), [("TOKYO-9", "YORK+5"), ("AAA-14", "BBB+12")])
def test_a_later_run_in_the_west_is_the_last_one(
    gradcli: Command, zone: Callable[[str], None], first: str, second: str
) -> None:
    zone(first)
    gradcli("train", "dots.yaml", "--max-steps", "6")
    zone(second)
    newest = gradcli("train", "dots.yaml", "--json").json["run"]
    assert gradcli("eval", "last", "--json").json["run"] == newest
    assert gradcli("eval", "dots", "--json").json["run"] == newest


def test_of_two_runs_in_one_second_the_later_one_is_the_last(gradcli: Command) -> None:
    for name in ("b", "a", "c", "b"):
        run = gradcli("train", "dots.yaml", "--name", name, "--max-steps", "0", "--json").json
        assert gradcli("eval", "last", "--json").json["run"] == run["run"]
