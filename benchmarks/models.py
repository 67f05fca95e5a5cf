"""The models of W1 to W8, their first weights, batches, losses and optimizers.

One text over `engine`, which is torch or gradcli.engine: that the two agree in every name and
argument is what the races rest on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import course as courses
from benchmarks.course import Course, Workload

# The classes by the names of courses, with arguments that are not their defaults.
OPTIMIZERS: dict[str, tuple[str, dict[str, float]]] = {
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {"weight_decay": 0.01}),
    "sgd": ("SGD", {"momentum": 0.9}),
    "plain": ("SGD", {}),
}


@dataclass(frozen=True)
class Training:
    """What a competitor makes steps of: the batches are all inputs and all targets in one each."""

    model: Any
    loss: Callable[[Any, Any], Any]
    xs: Any
    ys: Any


def training(engine: Any, course: Course, *, joint: bool) -> Training:
    """A course's model with its first weights, and the batches.

    With `joint`, queries, keys and values of attention come from one matrix, otherwise of three.
    """
    workload, functional = course.workload, engine.nn.functional
    model = _model(engine, workload.name, joint)
    _load(engine, model, course)
    loss = functional.mse_loss if workload.y.below is None else functional.cross_entropy
    sides = ((course.x, workload.x), (course.y, workload.y))
    xs, ys = (
        _tensor(engine, view, (courses.BATCHES, *side.shape), side.below is not None)
        for view, side in sides
    )
    return Training(model, loss, xs, ys)


def optimizer(engine: Any, workload: Workload, model: Any, **more: Any) -> Any:
    """The workload's optimizer; `more` are options that only one library has."""
    name, options = OPTIMIZERS[workload.optimizer]
    return getattr(engine.optim, name)(model.parameters(), lr=workload.lr, **options, **more)


def _tensor(engine: Any, view: memoryview, shape: tuple[int, ...], whole: bool = False) -> Any:
    flat = engine.frombuffer(view, dtype=engine.int64 if whole else engine.float32)
    return flat.reshape(shape).clone()


def _load(engine: Any, model: Any, course: Course) -> None:
    """The course's first weights; those of a joint matrix in its parts where there are three."""
    state = model.state_dict()
    for p in course.workload.parameters:
        weight = _tensor(engine, course.weights[p.name], p.shape)
        parts = [p.name] if p.name in state else [p.name.replace("qkv", q) for q in _QKV]
        rows = p.shape[0] // len(parts)
        for i, name in enumerate(parts):
            state[name] = weight[i * rows : (i + 1) * rows].clone()
    model.load_state_dict(state)


# -- models ----------------------------------------------------------------------------------------

_QKV = ("query", "key", "value")


def _model(engine: Any, name: str, joint: bool) -> Any:
    nn = engine.nn
    make: dict[str, Callable[[], Any]] = {
        "W1": lambda: _mlp(nn, [784, 128, 64, 32, 10], nn.functional.relu),
        "W2": lambda: _mlp(nn, [784, 128, 64, 32, 10], nn.functional.relu),
        "W3": lambda: _mlp(nn, [784, 512, 512, 10], nn.functional.relu),
        "W4": lambda: _cnn(nn),
        "W5": lambda: _resnet(nn),
        "W6": lambda: _gpt(nn, joint),
        "W7": lambda: _recurrent(nn),
        "W8": lambda: _mlp(nn, [1, 10, 1], engine.sigmoid),
    }
    return make[name]()


def _mlp(nn: Any, sizes: list[int], activation: Callable[[Any], Any]) -> Any:
    class Mlp(nn.Module):
        """Linear layers with an activation in between."""

        def __init__(self) -> None:
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

    return Mlp()


def _cnn(nn: Any) -> Any:
    F = nn.functional

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

    return Cnn()


def _resnet(nn: Any) -> Any:
    F = nn.functional

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

    return Resnet()


def _gpt(nn: Any, joint: bool) -> Any:
    F, width = nn.functional, courses.GPT_WIDTH

    class Attention(nn.Module):
        """x and what its tokens read from earlier ones, then a layer of its own for each token."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            if joint:
                self.qkv = nn.Linear(width, 3 * width, bias=False)
            else:
                self.query, self.key, self.value = (
                    nn.Linear(width, width, bias=False) for _ in _QKV
                )
            self.out = nn.Linear(width, width, bias=False)
            self.norm2 = nn.LayerNorm(width)
            self.up = nn.Linear(width, 4 * width, bias=False)
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, x: Any) -> Any:
            """The block's output."""
            batch, steps, _ = x.shape
            heads = (batch, steps, courses.GPT_HEADS, width // courses.GPT_HEADS)
            y = self.norm1(x)
            if joint:
                parts = self.qkv(y).split(width, dim=2)
            else:
                parts = (self.query(y), self.key(y), self.value(y))
            q, k, v = (part.reshape(heads).transpose(1, 2) for part in parts)
            read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(read.transpose(1, 2).reshape(batch, steps, width))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        """A transformer that predicts the next character."""

        def __init__(self) -> None:
            super().__init__()
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

    return Gpt()


def _recurrent(nn: Any) -> Any:
    width = courses.LSTM_WIDTH

    class Recurrent(nn.Module):
        """An LSTM over characters."""

        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(courses.VOCABULARY, width)
            self.lstm = nn.LSTM(width, width, batch_first=True)
            self.head = nn.Linear(width, courses.VOCABULARY)

        def forward(self, x: Any) -> Any:
            """Scores of the next character, one row a token."""
            y, _ = self.lstm(self.token(x))
            return self.head(y).reshape(-1, courses.VOCABULARY)

    return Recurrent()
