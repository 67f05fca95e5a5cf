"""Classes that users derive from an optimizer of the library."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.errors import OptionError


def parameter() -> nn.Parameter:
    return nn.Parameter(engine.ones((2, 3)))


def test_a_class_of_the_users_has_the_constructor_that_it_inherits_or_writes():
    class Counting(optim.SGD):
        steps: int = 0

    class Fast(optim.SGD):
        def __init__(self, params):
            super().__init__(params, lr=0.5)

    p = parameter()
    assert "steps" not in Counting([p], 0.1, 0.9).defaults
    assert Fast([p]).param_groups[0]["lr"] == 0.5
    with pytest.raises(OptionError, match="Counting: lr must be a number >= 0, got -1"):
        Counting([p], lr=-1)
    with pytest.raises(TypeError, match="steps"):
        Counting([p], steps=3)


def test_an_option_is_no_attribute_which_a_class_of_the_users_may_have():
    class Shown(optim.Adam):
        @property
        def lr(self):
            return self.param_groups[0]["lr"]

        def eps(self):
            return "a method"

    shown, plain = Shown([parameter()], lr=0.5), optim.Adam([parameter()])
    shown.param_groups[0]["lr"] = 0.25
    assert (shown.lr, shown.eps()) == (0.25, "a method")
    assert not any(hasattr(it, name) for it in (plain, optim.Adam) for name in plain.defaults)
    assert shown.defaults == {**plain.defaults, "lr": 0.5}
