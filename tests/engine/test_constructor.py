"""Constructors: what is said of arguments that do not fit their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn


class OwnConvolution(nn.Conv2d):
    """A user's own, whose constructor is inherited."""


@pytest.mark.parametrize(
    ("make", "args", "named", "message"),
    [
        (nn.Conv2d, (3,), {}, "Conv2d.__init__() missing 2 required"),
        (nn.Conv2d, (3, 4, 3), {"bais": True}, "Conv2d.__init__() got an unexpected keyword"),
        (nn.CELU, (), {"alpah": 1.0}, "CELU.__init__() got an unexpected keyword"),
        (nn.TransformerEncoderLayer, (8,), {}, "TransformerEncoderLayer.__init__() missing 1"),
        (nn.MSELoss, (), {"reductin": "sum"}, "MSELoss.__init__() got an unexpected keyword"),
        (engine.optim.SGD, (), {"lr": 0.1}, "SGD.__init__() missing 1 required"),
        (OwnConvolution, (3,), {}, "OwnConvolution.__init__() missing 2 required"),
    ],
)
def test_the_class_that_is_made_is_named(
    make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        make(*args, **named)
    assert str(caught.value).startswith(message)
