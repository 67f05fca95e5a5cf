"""A job's model, loss and optimizer in PyTorch, with the same weights.

Modules here have torch's class names, argument names and state_dict names, so that their own
constructors are the translation.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.bench.torch_transformer import TRANSLATORS, tie
from gradcli.config.modules import Parallel, RecurrentStates, Residual
from gradcli.devices import parsed
from gradcli.engine import nn
from gradcli.engine.nn.hooks import parts_of
from gradcli.errors import ConfigError, DeviceError
from gradcli.train.job import ScaledLoss

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.train.job import Job

State = Mapping[str, "Tensor"]

# Arguments of ours that say nothing of what is computed, or that no config sets.
LEAVE = {"dtype", "inplace", "return_indices", "init", "proj_size"}
# What torch has no class for: a function of torch, our module and the input.
OWN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ReLUSquared": lambda torch, module, x: torch.relu(x).square(),
    "SoftCap": lambda torch, module, x: module.cap * torch.tanh(x / module.cap),
    "SwiGLU": lambda torch, module, x: _swiglu(torch, *x.chunk(2, module.dim)),
}
CONTAINERS = ("Sequential", "Residual", "Parallel")


def must_be_installed() -> None:
    """Refuse at once where PyTorch is missing, without importing it."""
    if importlib.util.find_spec("torch") is None:
        raise DeviceError(
            "--compare torch: PyTorch is not installed in this Python",
            notes=(f"{sys.executable} -m pip install torch",),
        )


def imported() -> Any:
    """PyTorch, imported now; that takes seconds and a few hundred megabytes."""
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise DeviceError(f"--compare torch: PyTorch cannot be imported: {error}") from None


def device(torch: Any, name: str) -> str:
    """PyTorch's name of a device, which it then uses as exactly as we do: TF32 is off."""
    if name == "cpu":
        return name
    kind, index = parsed(name, "--device")
    there = {"cuda": "cuda", "metal": "mps"}[kind]
    if not (torch.backends.mps if there == "mps" else torch.cuda).is_available():
        raise DeviceError(
            f"--compare torch: PyTorch {torch.__version__} cannot use the device '{name}'"
        )
    if there == "cuda":
        torch.cuda.set_device(index)  # what it then means by "cuda"
    exact(torch)
    return there


def exact(torch: Any) -> None:
    """Products of float32 in float32."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


def model(torch: Any, job: Job, start: State) -> Any:
    """The job's model in PyTorch, with these weights."""
    theirs = _module(torch, job.model)
    tie(theirs, job.model)
    theirs.load_state_dict({name: as_torch(torch, tensor) for name, tensor in start.items()})
    return theirs.train()


def as_torch(torch: Any, tensor: Tensor) -> Any:
    """A copy of our tensor as PyTorch's."""
    return torch.from_dlpack(tensor.detach()).clone()


def _module(torch: Any, module: nn.Module) -> Any:
    translation = _plain(torch, module)
    parts = parts_of(module)
    if parts:
        checkpointing = importlib.import_module("torch.utils.checkpoint")
        plain = translation.forward
        if parts > 1:
            chain, plain = list(translation), checkpointing.checkpoint_sequential
            translation.forward = lambda x: plain(chain, parts, x, use_reentrant=False)
        else:
            translation.forward = lambda x: checkpointing.checkpoint(plain, x, use_reentrant=False)
    return translation


def _plain(torch: Any, module: nn.Module) -> Any:
    kind = type(module).__name__
    if kind in CONTAINERS:
        inside = [_module(torch, child) for child in module.children()]
        return _container(torch, module)(*inside)
    if kind in TRANSLATORS:
        return TRANSLATORS[kind](torch, module, _module)
    if kind in OWN:
        return _own(torch, module)
    if not hasattr(torch.nn, kind):
        translations = [
            *TRANSLATORS,
            *OWN,
            *CONTAINERS,
            *(name for name in nn.LAYERS if hasattr(torch.nn, name)),
        ]
        raise ConfigError(
            f"--compare torch: there is no translation of {kind} to PyTorch yet",
            code="E126",
            notes=(f"translated: {', '.join(translations)}",),
        )
    arguments = _arguments(getattr(torch.nn, kind), module)
    factory = _states(torch, kind, module.last) if isinstance(module, RecurrentStates) else None
    return (factory or getattr(torch.nn, kind))(**arguments)


def _arguments(theirs: Any, module: nn.Module) -> dict[str, Any]:
    """What makes their class the same: arguments have the same names, and modules keep them."""
    names = inspect.signature(theirs).parameters
    ours = getattr(nn, theirs.__name__, type(module))
    arguments = {
        name: getattr(module, name)
        for name in inspect.signature(ours).parameters
        if name not in LEAVE and hasattr(module, name) and (name in names or "args" in names)
    }
    if "bias" in arguments:  # the numbers themselves, or none
        arguments["bias"] = arguments["bias"] is not None and arguments["bias"] is not False
    return arguments


def _own(torch: Any, module: nn.Module) -> Any:
    """A module that does what ours does, where torch has no class for it."""

    class Own(torch.nn.Module):  # type: ignore[misc]
        def forward(self, input: Any) -> Any:
            return OWN[type(module).__name__](torch, module, input)

    return Own()


def _swiglu(torch: Any, first: Any, second: Any) -> Any:
    return torch.nn.functional.silu(first) * second


def _states(torch: Any, kind: str, last: bool) -> Any:
    """The class of recurrent layers that give one tensor, as in config/modules.py."""

    class OneTensor(getattr(torch.nn, kind)):  # type: ignore[misc]
        def forward(self, input: Any) -> Any:
            states, end = super().forward(input)
            if not last:
                return states
            h_n = end[0] if isinstance(end, tuple) else end
            directions = 2 if self.bidirectional else 1
            return torch.cat([h_n[-1 - i] for i in reversed(range(directions))], -1)

    return OneTensor


def _container(torch: Any, module: nn.Module) -> Any:
    """The class that does with its modules what this one does, as in config/modules.py."""
    if isinstance(module, Parallel):
        return _parallel(torch, module.join, module.dim)
    if isinstance(module, Residual):
        return _residual(torch, module.shortcut is not None)
    return torch.nn.Sequential


def _residual(torch: Any, shortcut: bool) -> Any:
    """The class of x + layers(x); a shortcut is its last module."""

    class TorchResidual(torch.nn.Sequential):  # type: ignore[misc]
        def __init__(self, *modules: Any) -> None:
            super().__init__(*(modules[:-1] if shortcut else modules))
            self.shortcut: Any = modules[-1] if shortcut else None

        def forward(self, input: Any) -> Any:
            output = input
            for module in self.children():
                output = output if module is self.shortcut else module(output)
            return (self.shortcut(input) if shortcut else input) + output

    return TorchResidual


def _parallel(torch: Any, join: str, dim: int) -> Any:
    """The class whose modules each take the same input."""

    class Branches(torch.nn.Sequential):  # type: ignore[misc]
        def forward(self, input: Any) -> Any:
            outputs = [branch(input) for branch in self.children()]
            return torch.cat(outputs, dim) if join == "concat" else sum(outputs[1:], outputs[0])

    return Branches


# A loss of a config, and its function in torch.nn.functional.
LOSSES = {
    "cross_entropy": "cross_entropy",
    "nll": "nll_loss",
    "mse": "mse_loss",
    "l1": "l1_loss",
    "smooth_l1": "smooth_l1_loss",
    "huber": "huber_loss",
    "bce": "binary_cross_entropy",
    "bce_with_logits": "binary_cross_entropy_with_logits",
    "kl": "kl_div",
    "poisson_nll": "poisson_nll_loss",
}


def loss(torch: Any, job: Job) -> Callable[[Any, Any], Any]:
    """The config's loss: (outputs, targets) to their mean loss, of scaled targets where it is."""
    plain = _loss(torch, job)
    if not isinstance(job.loss, ScaledLoss):
        return plain
    scale = job.loss.scale
    mean, std = torch.tensor(scale.mean), torch.tensor(scale.std)

    def scaled(outputs: Any, targets: Any) -> Any:
        return plain(outputs, (targets - mean.to(targets.device)) / std.to(targets.device))

    return scaled


def _loss(torch: Any, job: Job) -> Callable[[Any, Any], Any]:
    loss = job.resolved["loss"]
    options = {"name": loss} if isinstance(loss, str) else dict(loss)
    name = options.pop("name")
    if name not in LOSSES:
        raise ConfigError(
            f"--compare torch: there is no translation of the loss '{name}' to PyTorch yet",
            code="E126",
        )
    function = getattr(torch.nn.functional, LOSSES[name])
    for key in ("weight", "pos_weight"):
        numbers = options.pop(key, None)
        if numbers:
            options[key] = torch.tensor(numbers, dtype=torch.float32)
    if name in ("cross_entropy", "nll"):
        return lambda outputs, targets: function(
            outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1), **options
        )
    return lambda outputs, targets: function(
        outputs.reshape(targets.shape), targets.to(outputs.dtype), **options
    )


def optimizer(torch: Any, job: Job, translated: Any, **more: Any) -> Any:
    """The job's optimizer over the translated model's parameters, in the same groups.

    `more` holds arguments for PyTorch's optimizer only, such as `fused`.
    """
    theirs = dict(translated.named_parameters())
    names = {id(parameter): name for name, parameter in job.model.named_parameters()}
    groups = [
        {**group, "params": [theirs[names[id(parameter)]] for parameter in group["params"]]}
        for group in job.optimizer.param_groups
    ]
    kind = type(job.optimizer).__name__
    if not hasattr(torch.optim, kind):
        raise ConfigError(f"--compare torch: PyTorch has no optimizer {kind}", code="E126")
    return getattr(torch.optim, kind)(groups, **job.optimizer.defaults, **more)
