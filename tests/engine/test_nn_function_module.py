"""Modules of a function: constructor, attributes and buffers come from the fields of the class."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.function_module import FunctionModule, calls
from gradcli.errors import GradcliError


@calls(F.softplus)
class Plus(FunctionModule):
    beta: float = 1.0
    _: KW_ONLY
    threshold: float = 20.0

    def forward(self, input: engine.Tensor) -> engine.Tensor:
        return self.call(input)


def test_fields_are_parameters_attributes_and_options() -> None:
    x = engine.tensor([0.5, 30.0])
    module = Plus(2.0, threshold=1.0)
    assert (module.beta, module.threshold) == (2.0, 1.0)
    assert module(x).tolist() == F.softplus(x, 2.0, 1.0).tolist()
    module.beta = 3.0
    assert module(x).tolist() == F.softplus(x, 3.0, 1.0).tolist()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Plus(beta="2"), "Plus: beta must be a number, got '2'"),
        (lambda: nn.HuberLoss(delta=0.0), "HuberLoss: delta must be a number > 0, got 0.0"),
        (lambda: nn.MSELoss(reduction="avg"), "MSELoss: reduction must be one of 'none', 'mean'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_under_the_name_of_the_class(make, says) -> None:
    with pytest.raises(GradcliError) as caught:
        make()
    assert says in str(caught.value)


def test_a_field_that_is_a_tensor_is_a_buffer() -> None:
    weight = engine.tensor([2.0, 1.0])
    module = nn.CrossEntropyLoss(weight)
    assert module.weight is weight and list(module.state_dict()) == ["weight"]
    assert module.double().weight.dtype is engine.float64
    assert nn.CrossEntropyLoss().weight is None and not nn.CrossEntropyLoss().state_dict()
    with pytest.raises(GradcliError, match="buffer 'weight' takes a Tensor"):
        module.weight = 3
    module = nn.CrossEntropyLoss(nn.Parameter(weight))
    assert list(module.buffers()) == [module.weight] and not list(module.parameters())


def test_a_field_that_is_a_module_is_a_part_and_is_called() -> None:
    rows = [engine.tensor([[1.0, 1.0]]), engine.tensor([[1.0, 3.0]]), engine.tensor([[2.0, 2.0]])]
    distance = nn.PairwiseDistance(1.0)
    module = nn.TripletMarginWithDistanceLoss(distance_function=distance)
    assert module.distance_function is distance and list(module.children()) == [distance]
    expected = F.triplet_margin_with_distance_loss(*rows, distance_function=distance).item()
    assert module(*rows).item() == expected
    other = nn.TripletMarginWithDistanceLoss()
    assert module(*rows).item() != other(*rows).item()
    other.distance_function = distance
    assert other(*rows).item() == expected


def test_a_copy_and_a_subclass_of_ones_own_work_as_those_of_any_module() -> None:
    class Mine(nn.CrossEntropyLoss):
        def __init__(self) -> None:
            super().__init__(engine.tensor([2.0, 1.0]), reduction="sum")
            self.calls = 0

    x, labels = engine.tensor([[1.0, 2.0], [0.0, 3.0]]), engine.tensor([0, 1])
    expected = F.cross_entropy(x, labels, engine.tensor([2.0, 1.0]), reduction="sum").item()
    module = Mine()
    other = copy.deepcopy(module)
    other.weight = None
    assert module(x, labels).item() == expected != other(x, labels).item()
