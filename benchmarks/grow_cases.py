"""Models that grow along one axis at a time, as code that holds for gradcli and torch alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CLASSES, HIDDEN, ROWS = 10, 128, 64
CHANNELS, SIDE, PICTURES = 16, 16, 8
WIDTH, HEADS, TEXTS, VOCABULARY = 128, 4, 4, 65

Parts = tuple[Any, Any, Any]  # a model, its input and the classes that it is to give


@dataclass(frozen=True)
class Axis:
    """One way to grow.

    Attributes:
        title: what is trained, and what grows.
        sizes: where it is measured.
        build: makes the model of a size with a library.
        work: multiply-adds of a forward pass.
    """

    title: str
    sizes: tuple[int, ...]
    build: Callable[[Any, int], Parts]
    work: Callable[[int], int]


def _mlp(engine: Any, sizes: list[int], rows: int) -> Parts:
    nn = engine.nn
    layers = []
    for into, out in itertools.pairwise(sizes):
        layers += [nn.Linear(into, out), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES))
    return model, engine.randn(rows, sizes[0]), engine.randint(0, CLASSES, (rows,))


def _mlp_work(sizes: list[int], rows: int) -> int:
    all_sizes = [*sizes, CLASSES]
    return rows * sum(a * b for a, b in itertools.pairwise(all_sizes))


def _convolutions(engine: Any, channels: int, side: int) -> Parts:
    nn = engine.nn
    model = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, CLASSES),
    )
    target = engine.randint(0, CLASSES, (PICTURES,))
    return model, engine.randn(PICTURES, 3, side, side), target


def _convolutions_work(channels: int, side: int) -> int:
    return PICTURES * side**2 * 9 * (3 + channels) * channels


def _transformer_of(nn: Any, steps: int) -> Any:
    class Transformer(nn.Module):
        """One block of causal attention between an embedding and scores of the next token."""

        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(VOCABULARY, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
            self.out, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, VOCABULARY)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, tokens: Any) -> Any:
            """Scores, one row a token."""
            x = self.token(tokens)
            y, heads = self.norm1(x), (TEXTS, steps, HEADS, WIDTH // HEADS)
            parts = (layer(y).reshape(heads) for layer in (self.query, self.key, self.value))
            q, k, v = (part.transpose(1, 2) for part in parts)
            read = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(read.transpose(1, 2).reshape(TEXTS, steps, WIDTH))
            x = x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))
            return self.head(x).reshape(-1, VOCABULARY)

    return Transformer()


def _transformer(engine: Any, steps: int) -> Parts:
    tokens = engine.randint(0, VOCABULARY, (TEXTS, steps))
    target = engine.randint(0, VOCABULARY, (TEXTS * steps,))
    return _transformer_of(engine.nn, steps), tokens, target


def _transformer_work(steps: int) -> int:
    return TEXTS * steps * (WIDTH * (12 * WIDTH + VOCABULARY) + 2 * steps * WIDTH)


AXES = {
    "width": Axis(
        f"MLP of 2 layers, {ROWS} rows: numbers of a layer",
        (32, 64, 128, 256, 512, 1024),
        lambda engine, size: _mlp(engine, [size] * 3, ROWS),
        lambda size: _mlp_work([size] * 3, ROWS),
    ),
    "depth": Axis(
        f"MLP {HIDDEN} wide, {ROWS} rows: layers",
        (1, 2, 4, 8, 16, 32),
        lambda engine, size: _mlp(engine, [HIDDEN] * (size + 1), ROWS),
        lambda size: _mlp_work([HIDDEN] * (size + 1), ROWS),
    ),
    "batch": Axis(
        f"MLP 784-{HIDDEN}-{CLASSES}: rows of a batch",
        (1, 4, 16, 64, 256, 1024),
        lambda engine, size: _mlp(engine, [784, HIDDEN], size),
        lambda size: _mlp_work([784, HIDDEN], size),
    ),
    "channels": Axis(
        f"2 convolutions on {PICTURES} pictures of {SIDE} x {SIDE}: channels",
        (4, 8, 16, 32, 64, 128),
        lambda engine, size: _convolutions(engine, size, SIDE),
        lambda size: _convolutions_work(size, SIDE),
    ),
    "pixels": Axis(
        f"2 convolutions of {CHANNELS} channels on {PICTURES} pictures: pixels of a side",
        (8, 16, 32, 64, 128),
        lambda engine, size: _convolutions(engine, CHANNELS, size),
        lambda size: _convolutions_work(CHANNELS, size),
    ),
    "context": Axis(
        f"transformer of 1 block, {WIDTH} wide, {TEXTS} texts: tokens of a text",
        (16, 32, 64, 128, 256, 512),
        _transformer,
        _transformer_work,
    ),
}


def step(engine: Any, axis: str, size: int) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """A training step of SGD with its input and target."""
    engine.manual_seed(1)
    model, x, y = AXES[axis].build(engine, size)
    optimizer = engine.optim.SGD(model.parameters(), lr=1e-3)

    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = engine.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return train, x, y
