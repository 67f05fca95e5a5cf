"""Containers of modules and parameters, hooks, and weights that are shared."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F
from gradcli.errors import DTypeError, OptionError, RangeError


def names(module):
    return [name for name, _ in module.named_parameters()]


def test_module_list_inserts_pops_and_keeps_its_numbers():
    rows = nn.ModuleList([nn.Linear(1, n) for n in (1, 2, 3)])
    two = rows[1]
    assert rows.pop(1) is two
    assert [row.out_features for row in rows] == [1, 3]
    rows.insert(1, two)
    rows += [nn.Linear(1, 4)]
    assert [row.out_features for row in rows] == [1, 2, 3, 4]
    assert names(rows)[::2] == ["0.weight", "1.weight", "2.weight", "3.weight"]
    del rows[1:3]
    both = rows + nn.ModuleList([two])
    assert [row.out_features for row in both] == [1, 4, 2]
    assert two not in rows
    assert nn.ModuleList([rows[0]])[0] in rows
    with pytest.raises(RangeError, match=r"insert at 5 is outside -2\.\.2"):
        rows.insert(5, two)
    with pytest.raises(DTypeError, match="'2' is no Module"):
        rows.insert(0, 3)
    assert len(rows) == 2


def test_sequential_joins_and_inserts():
    net = nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())
    net.insert(0, nn.Flatten())
    assert [type(row).__name__ for row in net] == ["Flatten", "ReLU", "Tanh"]
    assert net(engine.ones(2, 1, 3)).shape == (2, 3)


def test_module_dict_is_a_dict_of_modules():
    net = nn.ModuleDict({"b": nn.Linear(2, 3), "a": nn.ReLU()})
    assert list(net) == ["b", "a"]
    assert names(net) == ["b.weight", "b.bias"]
    net.update([("c", nn.Tanh())])
    net.update(nn.ModuleDict({"a": nn.Sigmoid()}))
    assert list(net.keys()) == ["b", "a", "c"]
    assert isinstance(net["a"], nn.Sigmoid)
    assert isinstance(net.pop("c"), nn.Tanh)
    assert "c" not in net
    assert len(net) == 2
    del net["a"]
    assert [name for name, _ in net.items()] == ["b"]
    with pytest.raises(RangeError, match="no module is called 'x'; there are: b"):
        _ = net["x"]
    with pytest.raises(DTypeError, match="'y' is no Module"):
        net["y"] = 5
    with pytest.raises(OptionError, match="takes a mapping or pairs"):
        net.update([5])
    net.clear()
    assert list(net.values()) == []


def test_parameter_list_makes_parameters_of_tensors():
    own = nn.Parameter(engine.ones(2))
    rows = nn.ParameterList([own, engine.zeros(3, 2)])
    assert rows[0] is own
    assert isinstance(rows[-1], nn.Parameter)
    rows.append(engine.ones(1)).extend([engine.ones(4)])
    rows[2] = engine.zeros(5)
    assert names(rows) == ["0", "1", "2", "3"]
    assert [p.shape for p in rows] == [(2,), (3, 2), (5,), (4,)]
    assert len(rows[1:3]) == 2
    assert repr(rows[:2]) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [gradcli.float32 of size 2]\n"
        "    (1): Parameter containing: [gradcli.float32 of size 3x2]\n)"
    )
    with pytest.raises(RangeError, match=r"index 4 is outside -4\.\.3"):
        _ = rows[4]
    with pytest.raises(DTypeError, match="got one Tensor"):
        rows.extend(engine.ones(2))
    with pytest.raises(DTypeError, match="'4' is no Tensor"):
        rows.append(1.5)


def test_parameter_dict_is_a_dict_of_parameters():
    table = nn.ParameterDict({"b": engine.ones(2), "a": engine.zeros(1)})
    assert list(table) == ["a", "b"]  # by name, as torch enters a mapping
    table["c"] = engine.ones(3)
    first = table["a"]
    assert table.setdefault("a", engine.ones(9)) is first
    assert table.get("x", 5) == 5
    assert table.popitem()[0] == "c"
    assert (table | {"z": engine.ones(1)}).keys() == {"a", "b", "z"}
    assert list(reversed(table)) == ["b", "a"]
    assert names(nn.ModuleDict({"in": table})) == ["in.a", "in.b"]
    assert table.pop("a") is first
    with pytest.raises(RangeError, match="no parameter is called 'a'; there are: b"):
        del table["a"]
    with pytest.raises(DTypeError, match="'q' is no Tensor"):
        table["q"] = 2


def test_hooks_see_and_replace_arguments_and_outputs():
    layer = nn.Linear(2, 2, bias=False)
    seen = []
    before = layer.register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[0].tolist()))
    layer.register_forward_hook(lambda _, args, y: y + 1)
    x = engine.ones(1, 2)
    plain = layer.forward(x)
    assert layer(x).tolist() == (plain * 2 + 1).tolist()
    assert seen == [[[2.0, 2.0]]]
    before.remove()
    before.remove()
    assert layer(x).tolist() == (plain + 1).tolist()


def test_hooks_with_kwargs_run_in_their_order():
    class Scale(nn.Module):
        def forward(self, x, *, by=1):
            return x * by

    layer, order = Scale(), []
    layer.register_forward_hook(lambda *_: order.append("last"))
    layer.register_forward_hook(lambda *_: order.append("first"), prepend=True)
    with layer.register_forward_pre_hook(
        lambda _, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    ):
        assert layer(engine.ones(1), by=2).tolist() == [3.0]
    assert layer(engine.ones(1), by=2).tolist() == [2.0]
    assert order == ["first", "last"] * 2
    layer.register_forward_pre_hook(lambda *_: 5, with_kwargs=True)
    with pytest.raises(DTypeError, match="must return None or"):
        layer(engine.ones(1))
    with pytest.raises(DTypeError, match="a hook must be a function"):
        layer.register_forward_hook(3)


def test_a_hook_that_comes_or_goes_makes_a_new_program():
    layer = nn.Linear(2, 2, bias=False)
    run = engine.capture(lambda x: layer(x))
    x = engine.ones(1, 2)
    plain = [run(x).tolist() for _ in range(4)][-1]
    handle = layer.register_forward_hook(lambda _, args, y: y + 1)
    assert [run(x).tolist() for _ in range(4)] == [(engine.tensor(plain) + 1).tolist()] * 4
    handle.remove()
    assert run(x).tolist() == plain


def test_modules_and_parameters_are_found_by_dotted_names():
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 2)))
    assert net.get_submodule("0.0") is net[0][0]
    assert net.get_submodule("") is net
    assert net.get_parameter("0.0.bias") is net[0][0].bias
    with pytest.raises(OptionError, match=r"no module '0\.1'"):
        net.get_submodule("0.1")
    with pytest.raises(OptionError, match=r"no parameter '0\.x'"):
        net.get_parameter("0.x")


class Tied(nn.Module):
    """A table of words that also scores them."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(6, 3)
        self.head = nn.Linear(3, 6, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(self.words(x))


def test_a_tied_weight_is_one_parameter_under_two_names():
    model = Tied()
    assert names(model) == ["words.weight"]
    assert list(model.state_dict()) == ["words.weight", "head.weight"]
    other = Tied()
    other.load_state_dict(model.state_dict())
    assert other.head.weight is other.words.weight
    assert other.words.weight.tolist() == model.words.weight.tolist()


@pytest.mark.parametrize("captured", [False, True])
def test_an_optimizer_moves_a_tied_weight_once(captured):
    model = Tied()
    start = model.words.weight.detach().clone()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    x, y = engine.tensor([0, 2, 2, 5]), engine.tensor([1, 1, 3, 4])

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    (engine.capture(step) if captured else step)(x, y)
    table = start.requires_grad_()
    F.cross_entropy(F.linear(F.embedding(x, table), table), y).backward()
    wanted = (table.detach() - 0.5 * table.grad).reshape(-1).tolist()
    assert model.head.weight.detach().reshape(-1).tolist() == pytest.approx(wanted, abs=1e-6)


def test_frozen_parts_stay_and_the_rest_learns():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    optimizer = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    frozen, free = model[0].weight.tolist(), model[2].weight.tolist()
    model(engine.ones(5, 3)).sum().backward()
    optimizer.step()
    assert model[0].weight.tolist() == frozen
    assert model[0].weight.grad is None
    assert model[2].weight.tolist() != free
