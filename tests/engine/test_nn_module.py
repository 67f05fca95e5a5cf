"""Module: what it finds, saves, loads and shows."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


class Scale(nn.Module):
    """One parameter, one saved buffer, one that is not saved."""

    def __init__(self, *sizes: int, value: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(engine.full(sizes, value))
        self.register_buffer("calls", engine.tensor(0))
        self.register_buffer("cache", engine.zeros(2), persistent=False)
        self.register_parameter("bias", None)

    def forward(self, input):
        return input * self.weight

    def extra_repr(self):
        return f"{self.weight.shape}"


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scale(2, value=2.0)
        self.top = nn.Parameter(engine.zeros(3))
        self.second = Scale(2, value=3.0)

    def forward(self, input):
        return self.second(self.first(input))


def test_names_come_in_torchs_order():
    pair = Pair()
    assert [n for n, _ in pair.named_parameters()] == ["top", "first.weight", "second.weight"]
    assert [n for n, _ in pair.named_buffers()] == [
        "first.calls",
        "first.cache",
        "second.calls",
        "second.cache",
    ]
    assert list(pair.state_dict()) == [
        "top",
        "first.weight",
        "first.calls",
        "second.weight",
        "second.calls",
    ]
    assert [n for n, _ in pair.named_modules()] == ["", "first", "second"]
    assert [n for n, _ in pair.named_children()] == ["first", "second"]
    assert [n for n, _ in pair.named_parameters(prefix="net", recurse=False)] == ["net.top"]
    assert list(pair.children()) == [pair.first, pair.second]


def test_calling_runs_forward_and_gradients_arrive():
    pair = Pair()
    y = pair(engine.tensor([1.0, 2.0]))
    assert y.tolist() == [6, 12]
    y.backward(engine.ones(2))
    assert pair.first.weight.grad.tolist() == [3, 6]
    assert pair.second.weight.grad.tolist() == [2, 4]


def test_a_shared_parameter_is_one_parameter_with_two_names():
    pair = Pair()
    pair.second.weight = pair.first.weight
    assert [n for n, _ in pair.named_parameters()] == ["top", "first.weight"]
    assert {"first.weight", "second.weight"} <= set(pair.state_dict())
    assert len([*pair.named_parameters(remove_duplicate=False)]) == 3


def test_a_shared_module_is_walked_once_and_saved_under_both_names():
    scale = Scale(2)
    net = nn.Sequential(scale, scale)
    assert len([*net.parameters()]) == 1
    assert len([*net.modules()]) == 2
    assert list(net.state_dict()) == ["0.weight", "0.calls", "1.weight", "1.calls"]
    assert net(engine.ones(2)).tolist() == [1, 1]


def test_attributes_change_their_kind():
    net = nn.Module()
    net.x = 5
    net.x = nn.Parameter(engine.zeros(2))
    assert [n for n, _ in net.named_parameters()] == ["x"]
    net.x = Scale(1)
    assert [n for n, _ in net.named_parameters()] == ["x.weight"]
    net.x = None
    assert net.x is None
    assert [*net.parameters()] == []
    del net.x
    assert not hasattr(net, "x")


def test_wrong_attributes_are_refused():
    net = Scale(2)
    with pytest.raises(DTypeError, match="'weight' of Scale takes a Parameter"):
        net.weight = engine.zeros(2)
    with pytest.raises(DTypeError, match="buffer 'calls' takes a Tensor"):
        net.calls = 3
    with pytest.raises(OptionError, match="already has 'weight'"):
        net.register_buffer("weight", None)
    with pytest.raises(OptionError, match="dot"):
        net.register_parameter("a.b", None)
    with pytest.raises(AttributeError, match="Scale has no 'wieght'"):
        _ = net.wieght
    with pytest.raises(NotImplementedError, match="no forward"):
        nn.Module()(1)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(engine.zeros(1))

    with pytest.raises(OptionError, match=r"super\(\).__init__\(\)"):
        Early()


def test_state_dict_shares_memory_and_has_no_history():
    net = Scale(2)
    state = net.state_dict()
    assert not state["weight"].requires_grad
    with engine.no_grad():
        net.weight.fill_(7)
    assert state["weight"].tolist() == [7, 7]
    assert net.state_dict(keep_vars=True)["weight"] is net.weight
    assert list(net.state_dict(prefix="a.")) == ["a.weight", "a.calls"]


def test_load_state_dict_copies_into_the_same_tensors():
    here, there = Pair(), Pair()
    with engine.no_grad():
        there.top.fill_(5)
        there.second.calls.fill_(9)
    weight = here.first.weight
    result = here.load_state_dict(there.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert here.top.tolist() == [5, 5, 5]
    assert here.second.calls.item() == 9
    assert here.first.weight is weight
    with engine.no_grad():
        there.top.fill_(0)
    assert here.top.tolist() == [5, 5, 5]


def test_a_state_that_does_not_fit_is_listed_whole_and_loads_nothing():
    pair = Pair()
    state = {
        "top": engine.full((4,), 9.0),
        "first.weight": engine.full((2,), 9.0),
        "first.calls": engine.tensor(1),
        "third.weight": engine.zeros(2),
    }
    with pytest.raises(ShapeError) as caught:
        pair.load_state_dict(state)
    text = str(caught.value)
    assert "missing: second.weight, second.calls" in text
    assert "unexpected: third.weight" in text
    assert "top: got (4,), the module has (3,)" in text
    assert pair.first.weight.tolist() == [2, 2]
    with pytest.raises(ShapeError, match="missing: none; unexpected: none"):
        pair.load_state_dict({**pair.state_dict(), "top": engine.zeros(4)}, strict=False)
    with pytest.raises(DTypeError, match="takes a dict of Tensors by name, got int"):
        pair.load_state_dict(3)
    with pytest.raises(DTypeError, match="'top' must be a Tensor, got list"):
        pair.load_state_dict({"top": [1, 2, 3]}, strict=False)


def test_a_load_that_is_not_strict_says_what_it_left_out():
    pair = Pair()
    result = pair.load_state_dict({"top": engine.ones(3), "x": engine.ones(1)}, strict=False)
    assert result.unexpected_keys == ["x"]
    assert result.missing_keys == ["first.weight", "first.calls", "second.weight", "second.calls"]
    assert pair.top.tolist() == [1, 1, 1]


def test_train_and_eval_reach_every_module():
    pair = Pair()
    assert pair.eval() is pair
    assert [m.training for m in pair.modules()] == [False] * 3
    pair.train()
    assert [m.training for m in pair.modules()] == [True] * 3


def test_zero_grad_forgets_or_overwrites():
    net = Scale(2)
    net(engine.ones(2)).backward(engine.ones(2))
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [0, 0]
    net.zero_grad()
    assert net.weight.grad is None


def test_requires_grad_switches_all_parameters():
    pair = Pair().requires_grad_(False)
    assert not any(p.requires_grad for p in pair.parameters())
    assert not pair(engine.ones(2)).requires_grad


def test_to_changes_floats_and_keeps_the_objects():
    net = Scale(2)
    weight = net.weight
    net(engine.ones(2)).backward(engine.ones(2))
    net.to(engine.float64)
    assert net.weight is weight
    assert weight.dtype is weight.grad.dtype is engine.float64
    assert net.cache.dtype is engine.float64
    assert net.calls.dtype is engine.int64
    assert net.float().weight.dtype is engine.float32
    assert net.to("cpu") is net
    with pytest.raises(DTypeError, match="float32, float64 or bfloat16"):
        net.to(engine.int64)
    with pytest.raises(OptionError, match="no device 'abacus'"):
        net.to("abacus")


def test_apply_calls_children_first():
    seen = []
    pair = Pair()
    pair.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Scale", "Scale", "Pair"]


def test_repr_is_indented_as_in_torch():
    net = nn.Sequential(Scale(2), nn.Sequential(nn.ReLU()))
    assert repr(net) == (
        "Sequential(\n  (0): Scale((2,))\n  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )
    assert repr(net[0].weight).startswith("Parameter containing:\ntensor([1., 1.], requires_grad")


# -- containers --------------------------------------------------------------------------------


def test_sequential_takes_modules_or_names():
    named = nn.Sequential({"a": Scale(1, value=2.0), "b": Scale(1, value=5.0)})
    assert [n for n, _ in named.named_parameters()] == ["a.weight", "b.weight"]
    assert named.a is named[0]
    assert named(engine.ones(1)).tolist() == [10]


def test_sequential_is_a_list():
    a, b, c = Scale(1, value=2.0), Scale(1, value=3.0), Scale(1, value=5.0)
    net = nn.Sequential(a, b).append(c)
    assert len(net) == 3
    assert list(net) == [a, b, c]
    assert net[-1] is c
    tail = net[1:]
    assert list(tail.state_dict()) == ["1.weight", "1.calls", "2.weight", "2.calls"]
    assert tail[0] is b
    del net[0]
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "1.weight"]
    net[0] = a
    assert net(engine.ones(1)).tolist() == [10]
    with pytest.raises(RangeError, match=r"index 2 is outside -2..1"):
        _ = net[2]
    with pytest.raises(DTypeError, match="'0' is no Module"):
        nn.Sequential(5)


def test_module_list_holds_modules():
    rows = nn.ModuleList([Scale(1), Scale(1)])
    rows.extend([Scale(1)])
    assert len(rows) == 3
    assert len(rows[1:]) == 2
    assert [n for n, _ in rows.named_parameters()] == ["0.weight", "1.weight", "2.weight"]


def test_a_star_brings_layers_and_no_files():
    names: dict[str, object] = {}
    exec("from gradcli.engine.nn import *", names)
    assert {name for name, value in names.items() if inspect.ismodule(value)} == {
        "functional",
        "init",
    }
    assert set(nn.LAYERS) < set(names)


def test_every_layer_of_a_file_is_a_name_of_nn():
    bases = {
        *("Affine", "ByName", "ByPosition", "FunctionModule", "Loss", "Norm"),
        *("PairLoss", "Recurrent", "RunningNorm"),
    }
    for path in Path(nn.__path__[0]).glob("*.py"):
        module = importlib.import_module(f"{nn.__name__}.{path.stem}")
        layers = {
            name
            for name, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, nn.Module) and name[0] != "_"
        }
        lacking = {name for name in layers - bases if not hasattr(nn, name)}
        assert not lacking, f"__all__ of {path.name} lacks {lacking}"
    assert nn.LAYERS["Linear"] is nn.Linear
    assert not nn.LAYERS.keys() & {"Module", "Sequential", "ParameterList", "StatefulModule"}
