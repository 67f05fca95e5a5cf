"""The workloads in gradcli: eager, captured (one Python call a step), scan (many steps a call)."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

from benchmarks import course as courses
from benchmarks.course import Course
from benchmarks.runner import Loop, Runner
from gradcli import engine
from gradcli.engine import Tensor, nn, optim
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional as F

# Under the one name that it has in every revision that `before` builds.
_cpu: Any = importlib.import_module("gradcli.engine.device._cpu")
ffi, lib = _cpu.ffi, _cpu.lib
THREADS = 2


class Mlp(nn.Module):
    """Linear layers with an activation in between."""

    def __init__(self, sizes: list[int], activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = nn.ModuleList([nn.Linear(into, out) for into, out in pairs])
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """The last layer's outputs, without activation."""
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        out: Tensor = last(x)
        return out


class Cnn(nn.Module):
    """Two convolutions with pooling, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 7 * 7, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the ten classes."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        out: Tensor = self.head(F.relu(self.hidden(x.flatten(1))))
        return out


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

    def forward(self, x: Tensor) -> Tensor:
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

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the ten classes."""
        x = F.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(x.mean((2, 3)))
        return out


class Attention(nn.Module):
    """x and what its tokens read from earlier ones, then a layer of its own for each token."""

    def __init__(self) -> None:
        super().__init__()
        width = courses.GPT_WIDTH
        self.norm1 = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        batch, steps, width = x.shape
        heads = (batch, steps, courses.GPT_HEADS, width // courses.GPT_HEADS)
        y = self.norm1(x)
        q, k, v = (p(y).reshape(heads).transpose(1, 2) for p in (self.query, self.key, self.value))
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(read.transpose(1, 2).reshape(batch, steps, width))
        out: Tensor = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return out


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

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the next character, one row a token."""
        y = self.token(x) + self.position.weight
        for block in self.blocks:
            y = block(y)
        out: Tensor = self.head(self.norm(y)).reshape(-1, courses.VOCABULARY)
        return out


class Recurrent(nn.Module):
    """An LSTM over characters."""

    def __init__(self) -> None:
        super().__init__()
        width = courses.LSTM_WIDTH
        self.token = nn.Embedding(courses.VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, courses.VOCABULARY)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the next character, one row a token."""
        y, _ = self.lstm(self.token(x))
        out: Tensor = self.head(y).reshape(-1, courses.VOCABULARY)
        return out


MODELS: dict[str, Callable[[], nn.Module]] = {
    "W1": lambda: Mlp([784, 128, 64, 32, 10], F.relu),
    "W2": lambda: Mlp([784, 128, 64, 32, 10], F.relu),
    "W3": lambda: Mlp([784, 512, 512, 10], F.relu),
    "W4": Cnn,
    "W5": Resnet,
    "W6": Gpt,
    "W7": Recurrent,
    "W8": lambda: Mlp([1, 10, 1], F.sigmoid),
}

OPTIMIZERS: dict[str, Callable[[Any, float], optim.Optimizer]] = {
    "adam": lambda parameters, lr: optim.Adam(parameters, lr=lr),
    "adamw": lambda parameters, lr: optim.AdamW(parameters, lr=lr, weight_decay=0.01),
    "sgd": lambda parameters, lr: optim.SGD(parameters, lr=lr, momentum=0.9),
    "plain": lambda parameters, lr: optim.SGD(parameters, lr=lr),
}


def _tensor(view: memoryview, shape: tuple[int, ...], whole: bool = False) -> Tensor:
    flat = engine.frombuffer(view, dtype=engine.int64 if whole else engine.float32)
    return flat.reshape(shape).clone()


def _load(model: nn.Module, course: Course) -> None:
    """The course's first weights; the joined projection of attention falls into its three parts."""
    state = model.state_dict()
    for p in course.workload.parameters:
        weight = _tensor(course.weights[p.name], p.shape)
        if ".qkv." in p.name:
            rows = p.shape[0] // 3
            for i, part in enumerate(("query", "key", "value")):
                name = p.name.replace("qkv", part)
                state[name] = weight[i * rows : (i + 1) * rows].clone()
        else:
            state[p.name] = weight
    model.load_state_dict(state)


def build(course: Course, mode: str) -> Runner:
    """The workload as a loop of `eager`, `captured` or `scan` calls."""
    cpu.set_threads(THREADS)
    workload = course.workload
    model = MODELS[workload.name]()
    _load(model, course)
    optimizer = OPTIMIZERS[workload.optimizer](model.parameters(), workload.lr)
    criterion = F.mse_loss if workload.y.below is None else F.cross_entropy

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = criterion(model(x), y.flatten() if workload.y.below else y)
        loss.backward()
        optimizer.step()
        return loss

    return _loop(step, course, mode)


def _loop(step: Callable[[Tensor, Tensor], Tensor], course: Course, mode: str) -> Runner:
    x, y = course.workload.x, course.workload.y
    xs = _tensor(course.x, (courses.BATCHES, *x.shape), x.below is not None)
    ys = _tensor(course.y, (courses.BATCHES, *y.shape), y.below is not None)
    pairs = [(xs[i].clone(), ys[i].clone()) for i in range(courses.BATCHES)]
    if mode == "eager":
        return Loop(step, pairs, values=_values)
    captured = engine.capture(step)
    if mode == "captured":
        return Loop(captured, pairs, values=_values, remark=lambda: captured.why_not)
    stacks = []
    for numbers in course.scan_batches():
        index = engine.tensor(numbers, dtype=engine.int64)
        stacks.append((engine.index_select(xs, 0, index), engine.index_select(ys, 0, index)))
    return Loop(
        captured.scan,
        stacks,
        unit=course.workload.scan,
        values=_values,
        remark=lambda: captured.why_not,
    )


def _values(result: Tensor) -> list[float]:
    return [float(v) for v in result.detach().reshape(-1).tolist()]


# -- one matrix product ----------------------------------------------------------------------------


class Products:
    """A list of equal calls handed to the kernels at once: what a product costs without Python."""

    unit = 16

    def __init__(self, m: int, k: int, n: int) -> None:
        no_bias = engine.empty(0)
        tensors = engine.rand(1, m, k), engine.rand(1, k, n), no_bias, engine.empty(1, m, n)
        self._tensors = tensors  # a call holds no memory alive
        self._described = [
            cpu.describe(t.array.storage, t.array.offset, t.shape, t.array.strides, t.dtype)
            for t in tensors
        ]
        self._calls = ffi.new("gc_call[]", self.unit)
        for call in self._calls:
            call.kernel = cpu.KERNELS["matmul"]
            call.ntensors = len(self._described)
            for i, described in enumerate(self._described):
                call.tensors[i] = described[0]
        self._error = ffi.new("gc_error *")

    def remark(self) -> str:
        """Nothing to say."""
        return ""

    def losses(self, steps: int) -> list[float]:
        """A product has none."""
        return []

    def run(self, steps: int) -> None:
        """`steps` products."""
        for _ in range(steps // self.unit):
            if lib.gc_run(self._calls, self.unit, self._error):
                raise RuntimeError("the kernels refused a product")


def matmul(m: int, k: int, n: int, mode: str) -> Runner:
    """One matrix product as an `eager` or `captured` call, or in `c` alone."""
    cpu.set_threads(THREADS)
    if mode == "c":
        return Products(m, k, n)
    a, b = engine.rand(m, k), engine.rand(k, n)

    def step(a: Tensor, b: Tensor) -> Tensor:
        product: Tensor = engine.matmul(a, b)
        return product

    call = step if mode == "eager" else engine.capture(step)
    return Loop(call, [(a, b)], values=lambda result: [])


def versions() -> dict[str, str]:
    """What is compared here, and the instruction set its kernels use."""
    import gradcli

    return {"gradcli": str(getattr(gradcli, "__version__", "")), "gradcli isa": cpu.isa()}
