"""Old public names: each gives the object under its new name, and says so."""

from types import ModuleType

import pytest

from gradcli import engine
from gradcli.engine.nn import sampling
from gradcli.engine.optim import schedule

NAMES = [
    (engine, "composed", "decomposed"),
    (engine.autograd, "recording", "is_grad_enabled"),
    (sampling, "Sampler", "TokenSampler"),
    (schedule, "Constant", "ConstantSchedule"),
    (schedule, "Step", "StepSchedule"),
    (schedule, "Cosine", "CosineSchedule"),
    (schedule, "Linear", "LinearSchedule"),
    (schedule, "Polynomial", "PolynomialSchedule"),
    (schedule, "Exponential", "ExponentialSchedule"),
    (schedule, "OneCycle", "OneCycleSchedule"),
    (schedule, "Plateau", "PlateauSchedule"),
    (schedule, "Sequential", "SequentialSchedule"),
]


@pytest.mark.parametrize(("module", "old", "new"), NAMES)
def test_an_old_name_works_and_warns(module: ModuleType, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now .*{new}"):
        assert getattr(module, old) is getattr(module, new)
    assert old not in dir(module)


@pytest.mark.parametrize("module", dict.fromkeys(row[0] for row in NAMES))
def test_a_name_that_never_was_is_refused(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing
