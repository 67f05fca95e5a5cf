"""`device=` of functions that make tensors: it wins over blocks and over the tensors given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.errors import OptionError

MADE: dict[str, Callable[[str | None], Tensor]] = {
    "arange": lambda d: engine.arange(5, device=d),
    "empty": lambda d: engine.empty((2,), device=d),
    "eye": lambda d: engine.eye(3, device=d),
    "full": lambda d: engine.full((2,), 1, device=d),
    "linspace": lambda d: engine.linspace(0, 1, 5, device=d),
    "logspace": lambda d: engine.logspace(0, 1, 5, device=d),
    "normal": lambda d: engine.normal(0.0, 1.0, (3,), device=d),
    "ones": lambda d: engine.ones(2, 3, device=d),
    "rand": lambda d: engine.rand(2, device=d),
    "randint": lambda d: engine.randint(0, 3, (2,), device=d),
    "randn": lambda d: engine.randn(2, device=d),
    "randperm": lambda d: engine.randperm(4, device=d),
    "tensor": lambda d: engine.tensor([1, 2], device=d),
    "tensor of one number": lambda d: engine.tensor(3.0, device=d),
    "tril_indices": lambda d: engine.tril_indices(3, 3, device=d),
    "triu_indices": lambda d: engine.triu_indices(3, 3, device=d),
    "zeros": lambda d: engine.zeros(2, device=d),
}
LIKE: dict[str, Callable[[Tensor, str | None], Tensor]] = {
    "empty_like": lambda x, d: engine.empty_like(x, device=d),
    "full_like": lambda x, d: engine.full_like(x, 2, device=d),
    "new_empty": lambda x, d: x.new_empty(2, device=d),
    "new_full": lambda x, d: x.new_full((2,), 1.0, device=d),
    "new_ones": lambda x, d: x.new_ones(2, device=d),
    "new_tensor": lambda x, d: x.new_tensor([1], device=d),
    "new_zeros": lambda x, d: x.new_zeros(2, device=d),
    "ones_like": lambda x, d: engine.ones_like(x, device=d),
    "rand_like": lambda x, d: engine.rand_like(x, device=d),
    "randint_like": lambda x, d: engine.randint_like(x, 3, device=d),
    "randn_like": lambda x, d: engine.randn_like(x, device=d),
    "zeros_like": lambda x, d: engine.zeros_like(x, device=d),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_lies_where_device_says_and_else_where_a_block_says(name: str) -> None:
    make = MADE[name]
    assert [make(d).device for d in ("meta", "cpu", engine.device("cpu"))] == ["meta", "cpu", "cpu"]
    assert make(None).device == "cpu"
    with engine.device("meta"):
        assert (make(None).device, make("cpu").device) == ("meta", "cpu")
        assert make("cpu").shape == make(None).shape


@pytest.mark.parametrize("name", LIKE)
def test_what_is_like_another_lies_where_device_says_and_else_beside_it(name: str) -> None:
    make = LIKE[name]
    for x in (engine.zeros(2, 3), engine.zeros(2, device="meta")):
        assert [make(x, d).device for d in (None, "cpu", "meta")] == [x.device, "cpu", "meta"]
        with engine.device("meta"):
            assert make(x, None).device == x.device


def test_numbers_are_the_same_and_gradients_are_asked_for() -> None:
    with engine.device("meta"):
        assert engine.arange(3, device="cpu").tolist() == [0, 1, 2]
        x = engine.tensor([1.5], device="cpu", requires_grad=True)
        (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0]
    engine.manual_seed(1)
    here = engine.randn(3)
    engine.manual_seed(1)
    assert engine.randn(3, device="cpu").tolist() == here.tolist()


@pytest.mark.parametrize("name", ["eye", "rand", "tensor", "zeros"])
def test_no_such_device_is_refused_by_the_name_of_the_function(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name}: no device 'abacus'; there are cpu, cuda"):
        MADE[name]("abacus")
    with pytest.raises(ValueError, match=f"{name}: .*device .*got (3|int)"):
        MADE[name](3)  # type: ignore[arg-type]
