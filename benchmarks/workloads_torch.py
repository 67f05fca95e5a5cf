"""The workloads in torch: eager, and with forward, backward and loss compiled."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import course as courses
from benchmarks.course import Course
from benchmarks.runner import Loop, Runner

THREADS = 2


class Mlp(nn.Module):
    """Linear layers with an activation in between."""

    def __init__(self, sizes: list[int], activation: Callable[[Any], Any]) -> None:
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = nn.ModuleList([nn.Linear(into, out) for into, out in pairs])
        self.activation = activation

    def forward(self, x: Any) -> Any:
        """The last layer's outputs, without activation."""
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        return last(x)


class Cnn(nn.Module):
    """Two convolutions with pooling, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 7 * 7, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        """Scores of the ten classes."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(F.relu(self.hidden(x.flatten(1))))


class Block(nn.Module):
    """relu(x + two convolutions of x)."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.shorter = stride != 1
        if self.shorter:
            self.short = nn.Conv2d(into, out, 1, stride=stride, bias=False)
            self.short_norm = nn.BatchNorm2d(out)

    def forward(self, x: Any) -> Any:
        """The block's output."""
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        short = self.short_norm(self.short(x)) if self.shorter else x
        return F.relu(y + short)


class Resnet(nn.Module):
    """Three stages of two blocks, 16, 32 and 64 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        self.blocks = nn.ModuleList([Block(*sizes) for sizes in courses.RESNET_BLOCKS])
        self.head = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        """Scores of the ten classes."""
        x = F.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    """x and what its tokens read from earlier ones, then a layer of its own for each token."""

    def __init__(self) -> None:
        super().__init__()
        width = courses.GPT_WIDTH
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Any) -> Any:
        """The block's output."""
        batch, steps, width = x.shape
        heads = (batch, steps, courses.GPT_HEADS, width // courses.GPT_HEADS)
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        parts = [part.view(heads).transpose(1, 2) for part in parts]
        read = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(read.transpose(1, 2).reshape(batch, steps, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A transformer that predicts the next character."""

    def __init__(self) -> None:
        super().__init__()
        width = courses.GPT_WIDTH
        self.token = nn.Embedding(courses.VOCABULARY, width)
        self.position = nn.Embedding(courses.GPT_CONTEXT, width)
        self.blocks = nn.ModuleList([Attention() for _ in range(courses.GPT_LAYERS)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, courses.VOCABULARY, bias=False)

    def forward(self, x: Any) -> Any:
        """Scores of the next character, one row a token."""
        y = self.token(x) + self.position.weight
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y)).reshape(-1, courses.VOCABULARY)


class Recurrent(nn.Module):
    """An LSTM over characters."""

    def __init__(self) -> None:
        super().__init__()
        width = courses.LSTM_WIDTH
        self.token = nn.Embedding(courses.VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, courses.VOCABULARY)

    def forward(self, x: Any) -> Any:
        """Scores of the next character, one row a token."""
        y, _ = self.lstm(self.token(x))
        return self.head(y).reshape(-1, courses.VOCABULARY)


MODELS: dict[str, Callable[[], Any]] = {
    "W1": lambda: Mlp([784, 128, 64, 32, 10], F.relu),
    "W2": lambda: Mlp([784, 128, 64, 32, 10], F.relu),
    "W3": lambda: Mlp([784, 512, 512, 10], F.relu),
    "W4": Cnn,
    "W5": Resnet,
    "W6": Gpt,
    "W7": Recurrent,
    "W8": lambda: Mlp([1, 10, 1], torch.sigmoid),
}

# Of fused, foreach and neither, the fastest of each: up to a quarter faster than the default.
OPTIMIZERS: dict[str, Callable[[Any, float], Any]] = {
    "adam": lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, fused=True),
    "adamw": lambda parameters, lr: torch.optim.AdamW(
        parameters, lr=lr, weight_decay=0.01, fused=True
    ),
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9, foreach=False),
    "plain": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, foreach=False),
}
# Measured: eager is a quarter to a third faster with it.
CHANNELS_LAST = ("W4", "W5")


def _tensor(view: memoryview, shape: tuple[int, ...], whole: bool = False) -> Any:
    kind = torch.int64 if whole else torch.float32
    return torch.frombuffer(view, dtype=kind).reshape(shape).clone()


def build(course: Course, mode: str) -> Runner:
    """The workload as a loop of `eager` steps, or with the model and its loss under `compile`."""
    torch.set_num_threads(THREADS)
    workload = course.workload
    model = MODELS[workload.name]()
    weights = {p.name: _tensor(course.weights[p.name], p.shape) for p in workload.parameters}
    model.load_state_dict({**model.state_dict(), **weights})
    x, y = workload.x, workload.y
    xs = _tensor(course.x, (courses.BATCHES, *x.shape), x.below is not None)
    ys = _tensor(course.y, (courses.BATCHES, *y.shape), y.below is not None)
    items = [(xs[i].clone(), ys[i].flatten() if y.below else ys[i].clone()) for i in range(len(xs))]
    if workload.name in CHANNELS_LAST:
        model = model.to(memory_format=torch.channels_last)
        items = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in items]
    optimizer = OPTIMIZERS[workload.optimizer](model.parameters(), workload.lr)
    criterion = F.mse_loss if y.below is None else F.cross_entropy

    def loss_of(x: Any, y: Any) -> Any:
        return criterion(model(x), y)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, items, values=lambda loss: [loss.item()])


def matmul(m: int, k: int, n: int, mode: str) -> Runner:
    """One matrix product into memory that is there."""
    torch.set_num_threads(THREADS)
    a, b, out = torch.rand(m, k), torch.rand(k, n), torch.empty(m, n)
    return Loop(lambda a, b: torch.mm(a, b, out=out), [(a, b)], values=lambda result: [])


def versions() -> dict[str, str]:
    """What is compared here."""
    return {"torch": torch.__version__}
