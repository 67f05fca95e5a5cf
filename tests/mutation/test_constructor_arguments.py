"""Every argument of every constructor, with every value that its declared type does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from module_targets import HOLDERS, ROWS, module_targets
from other_targets import other_targets
from targets import Target
from values import ANYTHING, has, plain_values, tensor_values

from gradcli.engine import nn
from gradcli.errors import GradcliError

ALL = [
    target
    for [target] in (*module_targets().values(), *other_targets().values())
    if not target.variadic and not target.call.__module__.startswith("gradcli.engine.ops")
]


def call_with(target: Target, name: str, value: Any) -> Any:
    """The call of a target with one argument replaced."""
    args, named = target.arguments()
    return target.call(**dict(zip(target.parameters, args, strict=False)) | named | {name: value})


def wrong_values(hint: Any) -> Iterator[Any]:
    return (value for value in (*plain_values(), *tensor_values()) if not has(hint, value))


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_an_argument_of_another_type_is_refused_by_name(target: Target) -> None:
    for name, hint in target.parameters.items():
        if hint in ANYTHING:
            continue
        for value in wrong_values(hint):
            with pytest.raises(GradcliError) as caught:
                pytest.fail(f"{name}={value!r:.60} gave {call_with(target, name, value)!r:.60}")
            said = str(caught.value)
            owners = (target.name.rpartition(".")[2], *target.names)
            assert said.startswith(tuple(f"{owner}: {name}" for owner in owners)), (value, said)
            assert len(said) < 400


def test_every_row_is_of_a_module() -> None:
    assert {*ROWS, *HOLDERS} <= set(vars(nn))
