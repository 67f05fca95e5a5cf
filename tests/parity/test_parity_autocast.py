"""autocast beside torch.autocast: the same ops in the same lists, and trainings that go alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import copy_weights, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402
from gradcli.engine.autocast import IN_FLOAT32, PRODUCTS, WIDEST  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402
from gradcli.engine.table import OPS  # noqa: E402

pytestmark = pytest.mark.parity

HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
# torch's names of parts of ops, by what they are parts of here.
PARTS = {
    "linalg_vector_norm": "vector_norm",
    "gru_cell": "gru_steps",
    "lstm_cell": "lstm_steps",
    "rnn_tanh_cell": "rnn_steps",
    **{f"upsample_{way}": "interpolate" for way in ("nearest1d", "nearest2d", "bilinear2d")},
}
# In none of torch's lists, but made of what is: log_softmax and nll_loss, tensordot, a norm of a
# dtype of its own; and a loss that torch refuses there.
MADE_OF = {"cross_entropy", "inner", "norm", "binary_cross_entropy"}
# There promotion is that of every op of two tensors.
BY_ITSELF = {"atan2"}


def listed(macro: str) -> set[str]:
    """The ops in one of the lists for CUDA, by the names that they have here."""
    text = HEADER.read_text()
    found = re.search(rf"#define {macro}\(_\)((?:.*\\\n)*.*)", text)
    assert found is not None
    names = {PARTS.get(name, name) for name in re.findall(r"_\((\w+)", found[1])}
    return {name for name in names if name in OPS}


def test_the_lists_are_torch_s() -> None:
    wide = listed("AT_FORALL_FP32") | listed("AT_FORALL_FP32_SET_OPT_DTYPE")
    assert listed("AT_FORALL_LOWER_PRECISION_FP") == PRODUCTS
    assert wide == IN_FLOAT32 - MADE_OF
    assert listed("AT_FORALL_PROMOTE") - BY_ITSELF == WIDEST - MADE_OF


def products(m, x, w, cube):
    """The ops of a list that torch has for the CPU too."""
    yield x @ w.t()
    yield m.linear(x, w)
    yield m.conv1d(cube, cube)
    yield m.scaled_dot_product_attention(cube, cube, cube)
    yield m.linear(x, w).relu() * 2
    yield m.linear(x, w) + x[:, :7]
    yield m.mse_loss(m.linear(x, w), x[:, :7])


def test_types_under_autocast_are_torch_s_of_the_cpu() -> None:
    x, w, cube = randn(3, 13).float(), randn(7, 13).float(), randn(2, 3, 5).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = list(products(torch.nn.functional, x, w, randn(2, 3, 5).float()))
    with engine.autocast():
        found = list(products(F, ours(x), ours(w), ours(cube)))
    for mine, other in zip(found, wanted, strict=True):
        assert mine.dtype.name == str(other.dtype).removeprefix("torch.")


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (
            part.reshape(*x.shape[:2], 2, 8).transpose(1, 2)
            for part in self.qkv(x).split(16, dim=-1)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class OurAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (
            part.reshape(*x.shape[:2], 2, 8).transpose(1, 2)
            for part in self.qkv(x).split(16, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


def mlp(m, _):
    return m.Sequential(m.Linear(16, 64), m.ReLU(), m.Linear(64, 32), m.Tanh(), m.Linear(32, 5))


def cnn(m, _):
    return m.Sequential(
        m.Conv2d(1, 8, 3), m.BatchNorm2d(8), m.ReLU(), m.MaxPool2d(2),
        m.Conv2d(8, 8, 3), m.ReLU(), m.Flatten(), m.Linear(32, 5),
    )  # fmt: skip


def gpt(m, attention):
    return m.Sequential(
        m.Embedding(5, 16), attention(), m.LayerNorm(16), m.Linear(16, 64), m.GELU(),
        m.Linear(64, 16), m.LayerNorm(16), m.Linear(16, 5),
    )  # fmt: skip


def tokens(*shape):
    return torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(1))


TRAININGS = {
    "mlp": (mlp, lambda: randn(32, 16).float(), lambda: tokens(32)),
    "cnn": (cnn, lambda: randn(16, 1, 10, 10).float(), lambda: tokens(16)),
    "gpt": (gpt, lambda: tokens(8, 12), lambda: tokens(96).roll(1)),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_twenty_steps_in_bfloat16_lose_as_torch_s_do(name: str) -> None:
    make, inputs, targets = TRAININGS[name]
    torch.manual_seed(0)
    reference = make(torch.nn, Attention)
    model = copy_weights(make(nn, OurAttention), reference)
    x, target = inputs(), targets()
    sgd = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    our_sgd = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    a, b = ours(x), ours(target)
    wanted, found = [], []
    for _ in range(20):
        sgd.zero_grad(), our_sgd.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(reference(x).reshape(-1, 5), target)
        with engine.autocast():
            our_loss = F.cross_entropy(model(a).reshape(-1, 5), b)
        loss.backward(), our_loss.backward()
        sgd.step(), our_sgd.step()
        wanted.append(loss.item()), found.append(our_loss.item())
    assert found[-1] < found[0] - 0.1
    # Logits are rounded to 8 bits, by 2^-9 of them at most; what differs in the rounding of
    # gradients grows with the steps. 2^-6 of the first loss is eight such roundings.
    bound = wanted[0] * 2.0**-6
    assert max(abs(m - w) for m, w in zip(found, wanted, strict=True)) <= bound
