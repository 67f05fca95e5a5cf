"""Containers print and name their contents as torch's do; tied weights train as there."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import copy_weights, ours  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402

pytestmark = pytest.mark.parity


def lists(library):
    rows = library.ModuleList([library.Linear(2, 3) for _ in range(3)])
    rows.append(library.Sequential(library.ReLU(), library.Linear(3, 1)))
    rows.insert(1, library.Tanh())
    rows.extend(library.ModuleList([library.Tanh(), library.Tanh()]))
    del rows[0]
    return rows


def dicts(library):
    net = library.ModuleDict([("b", library.Linear(2, 3)), ("a", library.ModuleDict())])
    net["list"] = library.ModuleList()
    net["nested"] = library.ModuleList([library.ModuleList([library.ReLU()] * 2)] * 2)
    return net


def sequences(library):
    net = library.Sequential(library.Linear(2, 3), library.Tanh()) + library.Sequential(
        library.Identity()
    )
    net.insert(1, library.Dropout2d(0.1))
    net.pop(0)
    return net


@pytest.mark.parametrize("make", [lists, dicts, sequences])
def test_containers_print_and_name_as_in_torch(make):
    found, wanted = make(nn), make(torch.nn)
    assert repr(found) == repr(wanted)
    assert list(found.state_dict()) == list(wanted.state_dict())
    assert [n for n, _ in found.named_modules()] == [n for n, _ in wanted.named_modules()]


def test_parameter_containers_name_as_in_torch():
    def names(library, ones):
        parts = library.ModuleDict(
            {
                "rows": library.ParameterList([ones(2), ones(3)]),
                "table": library.ParameterDict({"z": ones(1), "a": ones(2)}),
            }
        )
        return list(parts.state_dict())

    assert names(nn, engine.ones) == names(torch.nn, torch.ones)


def tied(library):
    words = library.Embedding(7, 5)
    head = library.Linear(5, 7, bias=False)
    head.weight = words.weight
    return library.Sequential(words, library.LayerNorm(5), library.ReLU(), head)


def test_tied_weights_train_as_in_torch(agree):
    torch.manual_seed(2)
    reference = tied(torch.nn).double()
    model = copy_weights(tied(nn).double(), reference)
    assert model[3].weight is model[0].weight
    steps = (
        optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9),
    )
    x = torch.tensor([[0, 3, 3, 6, 1], [5, 2, 0, 0, 4]])
    y = torch.roll(x, 1, 1)
    for _ in range(20):
        for net, optimizer, batch, loss in (
            (model, steps[0], (ours(x), ours(y)), nn.functional.cross_entropy),
            (reference, steps[1], (x, y), torch.nn.functional.cross_entropy),
        ):
            optimizer.zero_grad()
            loss(net(batch[0]).reshape(10, 7), batch[1].reshape(10)).backward()
            optimizer.step()
    for name, value in reference.state_dict().items():
        agree("nn.Embedding", model.state_dict()[name], value, terms=1 << 12)
