"""Right calls of optimizers, schedulers, schedules, first values and the engine's own functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from targets import Target, declared

from gradcli import engine
from gradcli.data import loader
from gradcli.engine import nn, optim
from gradcli.engine.nn import init
from gradcli.engine.optim import lr_scheduler, schedule

MakeArguments = Callable[[], list[Any]]


def weight() -> nn.Parameter:
    """A parameter with a gradient."""
    p = nn.Parameter(engine.rand(2, 3))
    (p * p).sum().backward()
    return p


def sgd() -> optim.Optimizer:
    """An optimizer of one group."""
    return optim.SGD([weight()], lr=0.1, momentum=0.5)


def train(optimizer: Any) -> None:
    """Two steps, and what a checkpoint asks for."""
    optimizer.step()
    optimizer.step()
    optimizer.state_dict()
    repr(optimizer)


def count(scheduler: Any) -> None:
    """Some steps, and the state."""
    for _ in range(4):
        plateau = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)
        scheduler.step(1.0) if plateau else scheduler.step()
    scheduler.state_dict()


def follow(one: Any) -> None:
    """The multiplier over a training."""
    for step in (0, 1, 5, 9, 10, 100):
        one.factor(step)
    one.watch({"loss": 1.0})
    one.state_dict()


SCHEDULERS: dict[str, MakeArguments] = {
    "LambdaLR": lambda: [sgd(), lambda epoch: 0.5],
    "MultiplicativeLR": lambda: [sgd(), lambda epoch: 0.5],
    "StepLR": lambda: [sgd(), 2, 0.1],
    "MultiStepLR": lambda: [sgd(), [1, 3], 0.1],
    "ConstantLR": lambda: [sgd(), 0.5, 2],
    "LinearLR": lambda: [sgd(), 0.5, 1.0, 2],
    "ExponentialLR": lambda: [sgd(), 0.9],
    "PolynomialLR": lambda: [sgd(), 3, 2.0],
    "CosineAnnealingLR": lambda: [sgd(), 3, 0.0],
    "CosineAnnealingWarmRestarts": lambda: [sgd(), 2, 2, 0.0],
    "OneCycleLR": lambda: [sgd(), 0.1, 10],
    "ReduceLROnPlateau": lambda: [sgd(), "min", 0.5, 1],
    "ChainedScheduler": lambda: [[lr_scheduler.StepLR(sgd(), 2)]],
}
SCHEDULES: dict[str, dict[str, Any]] = {
    "ConstantSchedule": {"total": 10, "warmup": 2},
    "StepSchedule": {"total": 10, "at": (3, 6), "factor": 0.1},
    "CosineSchedule": {"total": 10, "warmup": 2, "final": 0.1, "restart": 3, "stretch": 2},
    "LinearSchedule": {"total": 10, "final": 0.1},
    "PolynomialSchedule": {"total": 10, "final": 0.1, "power": 2.0},
    "ExponentialSchedule": {"total": 10, "factor": 0.9, "every": 2},
    "OneCycleSchedule": {"total": 10, "rise": 0.3},
    "PlateauSchedule": {"total": 10, "metric": "loss", "rising": False, "factor": 0.5},
    "SequentialSchedule": {
        "total": 10,
        "parts": (schedule.ConstantSchedule(total=5), schedule.LinearSchedule(total=5)),
        "at": (5,),
    },
}
INITS: dict[str, list[Any]] = {
    "calculate_gain": ["leaky_relu", 0.1],
    "constant_": [0.5],
    "sparse_": [0.5],
    "trunc_normal_": [0.0, 1.0, -2.0, 2.0],
    "uniform_": [0.0, 1.0],
    "normal_": [0.0, 1.0],
    "orthogonal_": [1.0],
}
TAKES_NO_MATRIX = {"calculate_gain": (), "dirac_": (2, 2, 3)}
NOT_PUBLIC = {"fans", "weight_and_bias_"}


def graph() -> list[Any]:
    """A result and the parameter it was made of."""
    p = nn.Parameter(engine.rand(2, 3))
    return [(p * 2).sum(), p]


ENGINE: dict[str, MakeArguments] = {
    "Generator": lambda: [1, "drops", 2],
    "autocast": lambda: ["cpu", engine.bfloat16, True, True],
    "checkpoint": lambda: [nn.Linear(3, 3), engine.rand(2, 3).requires_grad_()],
    "checkpoint_sequential": lambda: [[nn.Linear(3, 3), nn.ReLU()], 2, engine.rand(2, 3)],
    "decomposed": lambda: [True],
    "draw": lambda: graph()[:1],
    "empty": lambda: [2, 3],
    "full": lambda: [(2, 3), 0.5],
    "grad": graph,
    "linspace": lambda: [0.0, 1.0, 5],
    "ones": lambda: [2, 3],
    "set_float32_matmul_precision": lambda: ["highest"],
    "set_grad_enabled": lambda: [True],
    "tensor": lambda: [[[1.0, 2.0], [3.0, 4.0]]],
    "zeros": lambda: [2, 3],
    "from_dlpack": lambda: [engine.rand(2, 3)],
}


def replay(fast: Any) -> None:
    """Often enough for a program; over rows too."""
    for _ in range(4):
        fast(engine.ones(3))
    fast.scan(engine.ones(4, 3))


def rows() -> Any:
    """A small data set."""
    return loader.TensorDataset(engine.rand(6, 2), engine.rand(6))


LOADER: dict[str, MakeArguments] = {
    "BatchSampler": lambda: [range(6), 2, False],
    "ConcatDataset": lambda: [[rows(), rows()]],
    "DataLoader": lambda: [rows(), 2, True],
    "RandomSampler": lambda: [range(6), True, 4],
    "SequentialSampler": lambda: [range(6)],
    "Subset": lambda: [rows(), [1, 2]],
    "SubsetRandomSampler": lambda: [[1, 2]],
    "TensorDataset": lambda: [engine.rand(6, 2), engine.rand(6)],
    "WeightedRandomSampler": lambda: [[0.5, 0.2, 0.3], 4, True],
    "random_split": lambda: [rows(), [4, 2]],
}


def iterate(source: Any) -> None:
    """Everything in it, but no more than a user would wait for."""
    if isinstance(source, loader.Dataset | list):
        return
    for i, _ in enumerate(source):
        if i > 20:
            return


def _target(module: Any, prefix: str, name: str, make: MakeArguments, after: Any) -> Target:
    call = getattr(module, name)
    return Target(prefix + name, call, lambda: (make(), {}), *declared(call), after)


def _init_arguments(name: str) -> MakeArguments:
    shape = TAKES_NO_MATRIX.get(name, (4, 3))
    return lambda: [*([engine.zeros(*shape)] if shape else []), *INITS.get(name, [])]


def _nothing(result: Any) -> None:
    """Nothing more."""


@cache
def other_targets() -> dict[str, list[Target]]:
    """All of them by name."""
    found = [
        *(
            _target(optim, "optim.", name, lambda: [[weight()], 0.1], train)
            for name in optim.__all__
            if inspect.isclass(getattr(optim, name)) and name != "Optimizer"
        ),
        _target(optim, "", "clip_grad_norm_", lambda: [[weight()], 1.0, 2.0, True], _nothing),
        _target(optim, "", "clip_grad_value_", lambda: [[weight()], 1.0], _nothing),
        *(_target(lr_scheduler, "", *row, count) for row in SCHEDULERS.items()),
        _target(lr_scheduler, "", "SequentialLR", _sequential, count),
        *(_schedule(*row) for row in SCHEDULES.items()),
        *(
            _target(init, "init.", name, _init_arguments(name), _nothing)
            for name in _public(init)
            if name not in NOT_PUBLIC
        ),
        *(_target(engine, "", *row, _nothing) for row in ENGINE.items()),
        Target(
            "frombuffer",
            engine.frombuffer,
            lambda: ([bytearray(16)], {"dtype": engine.int32}),
            *declared(engine.frombuffer),
        ),
        Target(
            "manual_seed",
            engine.manual_seed,
            lambda: ([3, 1], {}),
            *declared(engine.manual_seed),
            names=frozenset(["Generator"]),
        ),
        _target(engine, "", "capture", lambda: [lambda x: x * 2 + 1], replay),
        *(_target(loader, "", *row, iterate) for row in LOADER.items()),
    ]
    return {one.name: [one] for one in found}


def _public(module: Any) -> list[str]:
    return [
        name
        for name, value in sorted(vars(module).items())
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
    ]


def _sequential() -> list[Any]:
    one = sgd()
    return [one, [lr_scheduler.StepLR(one, 2), lr_scheduler.ExponentialLR(one, 0.5)], [2]]


def _schedule(name: str, named: dict[str, Any]) -> Target:
    call = getattr(schedule, name)
    return Target(f"schedule.{name}", call, lambda: ([], dict(named)), *declared(call), follow)
