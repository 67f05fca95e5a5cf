"""Old public names: each gives the object under its new name, and says so."""

from types import ModuleType

import pytest

from gradcli import engine
from gradcli.engine.nn import sampling
from gradcli.engine.optim import schedule
from gradcli.engine.program.capture import Captured
from gradcli.errors import GradcliError

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


def test_the_old_keyword_and_attribute_of_capture_work_and_warn() -> None:
    def step(x: engine.Tensor) -> engine.Tensor:
        return x * x.item()

    reasons: list[str] = []
    with pytest.warns(DeprecationWarning, match="capture: on_refusal is now on_fallback"):
        captured = engine.capture(step, on_refusal=reasons.append)  # type: ignore[call-arg]
    for _ in range(3):
        captured(engine.ones(()))
    with pytest.warns(DeprecationWarning, match="why_not is now fallback_reason"):
        assert [captured.why_not] == reasons


def test_the_old_keyword_of_captured_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="on_refusal is now on_fallback"):
        Captured(engine.exp, (), on_refusal=print, eager=True)  # type: ignore[call-arg]


def test_capture_refuses_both_keywords_together() -> None:
    with pytest.raises((TypeError, GradcliError), match="on_refusal"):
        engine.capture(engine.exp, on_fallback=print, on_refusal=print)  # type: ignore[call-arg]
