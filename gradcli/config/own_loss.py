"""A loss of a user's own: its constructor's parameters are its keys, and it is tried early."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.config.losses import SHAPES, LossFunction, LossSpec
from gradcli.config.own_sentence import one_sentence
from gradcli.config.row import Row
from gradcli.engine import Tensor, nn
from gradcli.errors import ConfigError, DeviceError, ShapeError

if TYPE_CHECKING:
    from gradcli.data import DataSpec

Shape = tuple[int, ...]
NO_MEAN = (
    "a batch of the same samples twice has another loss: it is no mean over the samples, and "
    "batches of different sizes, train.micro_batch and val.loss weigh it as one"
)


class OwnLoss(Row):
    """A class that is marked as a loss, in the table of losses."""

    def __init__(self, cls: type, path: Path) -> None:
        super().__init__(cls)
        self.path = path
        self.name = cls.__name__
        self.targets = getattr(cls, "targets", "labels")
        with one_sentence(path):
            problem = self._problem(cls)
        if problem:
            raise ConfigError(f"{path}: {self.name} {problem}", code="E104")

    def _problem(self, cls: type) -> str:
        """What is wrong with the class itself."""
        if not issubclass(cls, nn.Module):
            return "is marked as a loss and is no nn.Module"
        if self.targets not in SHAPES:
            return f"has targets = {self.targets!r}; it must be 'labels' or 'values'"
        try:
            inspect.signature(cls.forward).bind(None, None, None)
        except TypeError as error:
            return f"must have forward(self, outputs, targets): {error}"
        assert self.parameters is not None  # an unknown type is found here
        return ""

    def __call__(self, **values: Any) -> LossSpec:
        """The loss with these values of its keys."""
        options = {self.keys[key]: value for key, value in values.items()}

        def make() -> LossFunction:
            with one_sentence(self.path):
                return SHAPES[self.targets](self.make(**options))

        def attempt(output: Shape, facts: DataSpec) -> str:
            with one_sentence(self.path):
                try:
                    self._attempt(options, output, facts, "meta")
                except DeviceError:  # it looks at numbers
                    self._attempt(options, output, facts, "cpu")
            return "" if self._is_mean(make, output, facts) else NO_MEAN

        mixed = self.targets == "labels"
        return LossSpec((self.targets,), make, mixed=mixed, attempt=attempt, distance=None)

    def _attempt(
        self, options: dict[str, Any], output: Shape, facts: DataSpec, device: str
    ) -> None:
        """The loss of a few samples of zeros and its gradient, which must be one."""
        state = engine.get_rng_state()
        try:
            with engine.device(device), engine.enable_grad():
                module = self.make(**options)
                if any(True for _ in module.parameters()):
                    raise ShapeError(
                        f"{self.name} has parameters, and only those of the model are trained; "
                        "make them buffers, or part of a layer"
                    )
                for targets in self._samples(facts, output):
                    self._judge(module, targets, output)
        finally:
            engine.set_rng_state(state)

    def _is_mean(self, make: Callable[[], LossFunction], output: Shape, facts: DataSpec) -> bool:
        """Whether doubling a batch keeps the loss; true if that cannot be tried."""
        state = engine.get_rng_state()
        try:
            targets = next(self._samples(facts, output))
            x, loss = engine.rand(targets.shape[0], *output), make()
            once = loss(x, targets).item()
            twice = loss(engine.cat([x, x]), engine.cat([targets, targets])).item()
        except Exception:  # such numbers may be none that it takes
            return True
        finally:
            engine.set_rng_state(state)
        finite = math.isfinite(once) and math.isfinite(twice)
        return not finite or math.isclose(once, twice, rel_tol=1e-3, abs_tol=1e-6)

    def _samples(self, facts: DataSpec, output: Shape) -> Iterator[Tensor]:
        """Targets of a few samples: labels or numbers; probabilities of classes where mixed.

        They are not as many as the outputs of one, or a wrong shape would fit by chance.
        """
        each = math.prod(facts.target)
        batch = next(number for number in (2, 3, 4) if number * each not in output)
        dtype = engine.float32 if self.targets == "values" else engine.int64
        yield engine.zeros(batch, *facts.target, dtype=dtype)
        if facts.mixed:
            yield engine.zeros(batch, *facts.target, *output[-1:])

    def _judge(self, module: nn.Module, targets: Tensor, output: Shape) -> None:
        versions = [buffer.array.storage.version for buffer in module.buffers()]
        outputs = engine.zeros(targets.shape[0], *output, requires_grad=True)
        loss: Any = SHAPES[self.targets](module)(outputs, targets)
        if not isinstance(loss, Tensor) or loss.shape or not loss.is_floating_point():
            result = type(loss).__name__
            if isinstance(loss, Tensor):
                result = f"{loss.dtype.name} of shape {loss.shape}"
            raise ShapeError(
                f"{self.name} must give one floating-point number, the mean loss of the batch, as "
                f"a tensor of shape (); it gave {result}; mean() makes one number of many"
            )
        if loss.requires_grad:
            loss.backward()
        if outputs.grad is None:
            raise ShapeError(
                f"{self.name} has no gradient with respect to the outputs of the model; it must "
                "compute with them, without item(), detach() or argmax()"
            )
        if versions != [buffer.array.storage.version for buffer in module.buffers()]:
            raise ShapeError(
                f"{self.name} changes its buffers, which no checkpoint keeps; a loss must depend "
                "on outputs and targets alone"
            )
