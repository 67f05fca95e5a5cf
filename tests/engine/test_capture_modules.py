"""A captured step notices what is replaced in the modules that it works with, as eager ones do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F

WIDTH = 4


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def numbers(*shape: int, seed: int) -> Any:
    return engine.rand(*shape, generator=engine.Generator(seed)) - 0.5


def parameter(*shape: int, seed: int) -> Any:
    return nn.Parameter(numbers(*shape, seed=seed))


def linear(seed: int) -> Any:
    layer: Any = nn.Linear(WIDTH, WIDTH)
    layer.weight.data.copy_(numbers(WIDTH, WIDTH, seed=seed))
    layer.bias.data.copy_(numbers(WIDTH, seed=seed + 1))
    return layer


class Layer(nn.Module):
    """One of everything that a forward may look at."""

    power = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(WIDTH, WIDTH, seed=1)
        self.bias: Any = parameter(WIDTH, seed=2)
        self.shift: Any
        self.register_buffer("shift", numbers(WIDTH, seed=3))
        self.inner: Any = linear(4)
        self.dropped: Any = nn.Dropout(0.0)
        self.listed = nn.ModuleList([linear(6), linear(8)])
        self.named = nn.ModuleDict({"a": linear(10), "b": nn.Tanh()})
        self.chain = nn.Sequential(linear(12), nn.Tanh())
        self.weights = nn.ParameterList([parameter(WIDTH, seed=14), parameter(WIDTH, seed=15)])
        self.biases = nn.ParameterDict({"a": parameter(WIDTH, seed=16)})
        self.mask = numbers(WIDTH, seed=17)
        self.scale: float | None = 1.5
        self.mode = "plain"
        self.sizes: tuple[Any, ...] = (1, 2.0)
        self.act: Any = F.tanh

    @property
    def doubled(self) -> float:
        return 2.0 * (self.scale or 3.0)

    def forward(self, x: Any) -> Any:
        y = (
            F.linear(self.dropped(self.inner(x)), self.weight, self.bias) * self.doubled
            + self.shift
        )
        for module in self.listed:
            y = module(y)
        for name in self.named:
            y = self.named[name](y)
        y = self.chain(y)
        for weight in self.weights:
            y = y * weight
        for bias in self.biases.values():
            y = y + bias
        if self.mode != "plain":
            y = y * 0.25
        if hasattr(self, "extra"):
            y = y + self.extra
        return self.helped(self.act(y) * self.mask) * self.sizes[1]

    def helped(self, y: Any) -> Any:
        return (y * y + 1.0) ** self.power


def act_set(name: str, make: Callable[[], Any]) -> Callable[[Any], None]:
    return lambda layer: setattr(layer, name, make())


def register_again(layer: Any) -> None:
    del layer.bias
    layer.register_parameter("bias", parameter(WIDTH, seed=21))


def buffer_again(layer: Any) -> None:
    del layer.shift
    layer.register_buffer("shift", numbers(WIDTH, seed=21))


def insert(layer: Any) -> None:
    layer.chain.insert(0, linear(21))


def extend(layer: Any) -> None:
    layer.listed += [nn.Tanh(), linear(21)]


def data(layer: Any) -> None:
    layer.weight.data = numbers(WIDTH, WIDTH, seed=21)


REPLACED: dict[str, Callable[[Any], Any]] = {
    "a parameter": act_set("weight", lambda: parameter(WIDTH, WIDTH, seed=21)),
    "a parameter with None": act_set("bias", lambda: None),
    "a parameter, registered again": register_again,
    "a parameter in the table": lambda m: m._parameters.update(bias=parameter(WIDTH, seed=21)),
    "a parameter's data": data,
    "a parameter's data below": lambda m: setattr(m.inner.weight, "data", m.weight.data.clone()),
    "a parameter's type": lambda m: m.biases.bfloat16(),
    "a parameter frozen": lambda m: m.weight.requires_grad_(False),
    "a parameter tied": lambda m: setattr(m.inner, "weight", m.weight),
    "a buffer": act_set("shift", lambda: numbers(WIDTH, seed=21)),
    "a buffer, registered again": buffer_again,
    "a buffer in the table": lambda m: m._buffers.__setitem__("shift", numbers(WIDTH, seed=21)),
    "a plain tensor": act_set("mask", lambda: numbers(WIDTH, seed=21)),
    "a submodule": act_set("inner", lambda: linear(21)),
    "a submodule of another kind": act_set("inner", nn.Tanh),
    "a submodule, registered": lambda m: m.add_module("inner", linear(21)),
    "a submodule's parameter": lambda m: setattr(m.inner, "weight", parameter(4, 4, seed=21)),
    "a submodule's parameter with None": lambda m: setattr(m.inner, "bias", None),
    "a list's item": lambda m: m.listed.__setitem__(1, linear(21)),
    "a list's items": extend,
    "a list's end": lambda m: m.listed.pop(-1),
    "a list's start": lambda m: m.listed.__delitem__(0),
    "a chain's item": lambda m: m.chain.__setitem__(0, linear(21)),
    "a chain, appended to": lambda m: m.chain.append(linear(21)),
    "a chain, inserted into": insert,
    "a chain's parameter": lambda m: setattr(m.chain[0], "weight", parameter(4, 4, seed=21)),
    "a dict's item": lambda m: m.named.__setitem__("b", linear(21)),
    "a dict, updated": lambda m: m.named.update({"c": linear(21)}),
    "a dict, popped": lambda m: m.named.pop("a"),
    "a dict, cleared": lambda m: m.named.clear(),
    "a listed parameter": lambda m: m.weights.__setitem__(0, parameter(WIDTH, seed=21)),
    "a listed parameter, appended": lambda m: m.weights.append(parameter(WIDTH, seed=21)),
    "a named parameter": lambda m: m.biases.__setitem__("a", parameter(WIDTH, seed=21)),
    "a named parameter, popped": lambda m: m.biases.pop("a"),
    "a named parameter, set by default": lambda m: m.biases.setdefault("b", m.bias),
    "forward": lambda m: setattr(m, "forward", lambda x: x * m.weight.sum()),
    "forward below": lambda m: setattr(m.inner, "forward", lambda x: x * m.inner.weight.sum()),
    "a method": lambda m: setattr(m, "helped", lambda y: y * m.weight.sum()),
    "a function": act_set("act", lambda: F.sigmoid),
    "a number": act_set("scale", lambda: 0.75),
    "a number with None": act_set("scale", lambda: None),
    "a number below": lambda m: setattr(m.dropped, "p", 1.0),
    "a number of a hidden class attribute": act_set("power", lambda: 3.0),
    "a text": act_set("mode", lambda: "other"),
    "a tuple": act_set("sizes", lambda: (1, 0.5)),
    "an attribute that was missing": act_set("extra", lambda: 2.0),
    "a parameter that was missing": act_set("extra", lambda: parameter(WIDTH, seed=21)),
    "training": lambda m: m.eval(),
    "a hook": lambda m: m.inner.register_forward_hook(lambda _, args, y: y * 2.0),
}


class Around(nn.Module):
    """A model with the layer somewhere inside; `way` is how it is reached."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first = linear(30)
        self.layer = Layer()
        self.way = way

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.layer.forward(x) if self.way == "its forward" else self.layer(x)

    def encode(self, x: Any) -> Any:
        return self.layer(self.first(x))


WAYS: dict[str, Callable[[], tuple[Any, Any, Callable[[Any], Any]]]] = {}


def way(name: str) -> Callable[[Any], Any]:
    return lambda function: WAYS.setdefault(name, function)


@way("itself")
def _() -> Any:
    layer = Layer()
    return layer, layer, layer


@way("its forward")
def _() -> Any:
    model = Around("its forward")
    return model, model.layer, model


@way("another method")
def _() -> Any:
    model = Around("another method")
    return model, model.layer, lambda x: model.encode(x)


@way("Sequential")
def _() -> Any:
    layer = Layer()
    model = nn.Sequential(linear(30), nn.Sequential(layer, nn.Tanh()))
    return model, layer, model


@way("ModuleList")
def _() -> Any:
    layer = Layer()
    model: Any = nn.ModuleDict({"a": nn.ModuleList([linear(30), layer])})
    return model, layer, lambda x: model["a"][1](model["a"][0](x))


@way("checkpoint")
def _() -> Any:
    model = Around("checkpoint")
    return model, model.layer, lambda x: engine.checkpoint(model, x)


class Run:
    """Steps of training of a fresh model, eager or captured."""

    def __init__(self, way: str, capture: bool) -> None:
        self.model, self.layer, self.call = WAYS[way]()
        self.optimizer = optim.SGD(list(self.model.parameters()), lr=0.05, momentum=0.5)
        self.runs = 0
        self.step: Any = engine.capture(self.made, on_fallback=refuse) if capture else self.made

    def made(self, x: Any) -> Any:
        self.runs += 1
        self.model.zero_grad()
        self.optimizer.zero_grad()
        y = self.call(x)
        loss = (y * y).mean()
        loss.backward()
        self.optimizer.step()
        return loss, y

    def results(self, steps: int) -> Iterator[Any]:
        for i in range(steps):
            loss, y = self.step(numbers(3, WIDTH, seed=40 + i))
            yield loss.item(), y.tolist()
        yield {name: tensor.tolist() for name, tensor in self.model.state_dict().items()}


@pytest.mark.parametrize("reached", WAYS)
@pytest.mark.parametrize("replaced", REPLACED)
def test_a_captured_step_goes_on_as_an_eager_one(replaced: str, reached: str) -> None:
    eager, captured = (Run(reached, capture) for capture in (False, True))
    assert list(captured.results(3)) == list(eager.results(3))
    assert captured.runs == 2
    for run in (eager, captured):
        REPLACED[replaced](run.layer)
    assert list(captured.results(3)) == list(eager.results(3))
    assert captured.runs == 4  # recorded twice, and replayed again


def test_every_replacement_changes_what_the_step_gives() -> None:
    def third(change: Callable[[Any], Any]) -> Any:
        run = Run("itself", False)
        list(run.results(2))
        change(run.layer)
        return list(run.results(2))

    plain = third(lambda layer: None)
    assert [name for name, change in REPLACED.items() if third(change) == plain] == ["training"]


@pytest.mark.parametrize("name", ["forward", "helped", "power"])
def test_what_a_class_gives_is_noticed_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(Layer):
        pass

    layer, other = Own(), Own()
    fast = engine.capture(layer, on_fallback=refuse)
    x = numbers(3, WIDTH, seed=40)
    for _ in range(4):
        assert fast(x).tolist() == other(x).tolist()
    for _ in range(2):
        new: Any = 3.0 if name == "power" else lambda self, y: y * self.weight.sum()
        monkeypatch.setattr(Own, name, new)
        for _ in range(4):
            assert fast(x).tolist() == other(x).tolist()
