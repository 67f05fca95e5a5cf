"""Constructions of every module that are right, and an input for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from targets import Target, backward, declared

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.tensor import Tensor

Input = Callable[[], tuple[Any, ...]]


def rand(*shapes: tuple[int, ...]) -> Input:
    """Tensors of these shapes."""
    return lambda: tuple(engine.rand(*shape) for shape in shapes)


def classes(rows: int, count: int) -> Input:
    """Scores and the number of the right class."""
    return lambda: (engine.rand(rows, count), engine.tensor([i % count for i in range(rows)]))


def signs(*shapes: tuple[int, ...]) -> Input:
    """Tensors, and 1 or -1 for each row."""
    rows = shapes[0][0]
    return lambda: (*rand(*shapes)(), engine.tensor([1.0 - i % 2 * 2 for i in range(rows)]))


def lines(channels: int) -> Input:
    """A batch of lines."""
    return rand((2, channels, 8))


def images(channels: int) -> Input:
    """A batch of images."""
    return rand((2, channels, 6, 6))


def indices() -> tuple[Any, ...]:
    """Rows to pick."""
    return (engine.tensor([[0, 1], [2, 0]]),)


def generated(model: Any) -> Any:
    """What a model gives in two pieces."""
    return model(engine.rand(2, 3, 4)), model(engine.rand(2, 1, 4))


def attention() -> nn.SelfAttention:
    """A small one."""
    return nn.SelfAttention(4, 2)


# name: its arguments, and what it is then called with
ROWS: dict[str, tuple[tuple[Any, ...], dict[str, Any], Input]] = {
    "Linear": ((3, 4), {"bias": True}, rand((2, 3))),
    "Bilinear": ((3, 2, 4), {}, rand((2, 3), (2, 2))),
    "Conv1d": ((2, 4, 3), {"stride": 1, "padding": 1, "dilation": 1, "groups": 2}, lines(2)),
    "Conv2d": ((2, 4, 3), {"stride": 1, "padding": 1, "dilation": 1, "groups": 2}, images(2)),
    "ConvTranspose1d": ((2, 4, 3), {"stride": 2, "output_padding": 1}, lines(2)),
    "ConvTranspose2d": ((2, 4, 3), {"stride": 2, "output_padding": 1}, images(2)),
    "MaxPool1d": ((2,), {"stride": 2, "padding": 1}, lines(2)),
    "MaxPool2d": ((2,), {"stride": 2, "padding": 1}, images(2)),
    "AvgPool1d": ((2,), {"stride": 2, "padding": 1}, lines(2)),
    "AvgPool2d": ((2,), {"stride": 2, "divisor_override": 3}, images(2)),
    "AdaptiveAvgPool1d": ((2,), {}, lines(2)),
    "AdaptiveAvgPool2d": (((2, 3),), {}, images(2)),
    "AdaptiveMaxPool1d": ((2,), {}, lines(2)),
    "AdaptiveMaxPool2d": (((2, 3),), {}, images(2)),
    "PixelShuffle": ((2,), {}, images(4)),
    "PixelUnshuffle": ((2,), {}, images(2)),
    "Upsample": ((), {"scale_factor": 2.0, "mode": "nearest"}, images(2)),
    "CircularPad1d": ((1,), {}, lines(2)),
    "CircularPad2d": (((1, 0, 1, 2),), {}, images(2)),
    "ConstantPad1d": ((1, 0.5), {}, lines(2)),
    "ConstantPad2d": ((1, 0.5), {}, images(2)),
    "ReflectionPad1d": ((1,), {}, lines(2)),
    "ReflectionPad2d": ((1,), {}, images(2)),
    "ReplicationPad1d": ((1,), {}, lines(2)),
    "ReplicationPad2d": ((1,), {}, images(2)),
    "ZeroPad1d": ((1,), {}, lines(2)),
    "ZeroPad2d": ((1,), {}, images(2)),
    "Flatten": ((1, -1), {}, images(2)),
    "Unflatten": ((1, (2, 2)), {}, rand((2, 4))),
    "Identity": ((), {}, rand((2, 3))),
    "Dropout": ((0.5,), {}, rand((2, 3))),
    "Dropout1d": ((0.5,), {}, lines(2)),
    "Dropout2d": ((0.5,), {}, images(2)),
    "AlphaDropout": ((0.5,), {}, rand((2, 3))),
    "BatchNorm1d": ((3,), {"eps": 1e-5, "momentum": 0.1}, rand((4, 3))),
    "BatchNorm2d": ((3,), {"eps": 1e-5, "momentum": 0.1}, images(3)),
    "InstanceNorm1d": ((3,), {"eps": 1e-5, "track_running_stats": True}, lines(3)),
    "InstanceNorm2d": ((3,), {"affine": True}, images(3)),
    "LayerNorm": ((4,), {"eps": 1e-5}, rand((2, 4))),
    "RMSNorm": (((4,),), {"eps": 1e-5}, rand((2, 4))),
    "GroupNorm": ((2, 4), {"eps": 1e-5}, images(4)),
    "LocalResponseNorm": ((2,), {"alpha": 1e-4}, images(4)),
    "Embedding": ((4, 3), {"padding_idx": 1}, indices),
    "RNN": ((3, 4), {"num_layers": 2, "batch_first": True, "dropout": 0.1}, rand((2, 5, 3))),
    "LSTM": ((3, 4), {"num_layers": 2, "batch_first": True, "dropout": 0.1}, rand((2, 5, 3))),
    "GRU": ((3, 4), {"num_layers": 1, "bidirectional": True}, rand((2, 5, 3))),
    "RNNCell": ((3, 4), {"nonlinearity": "relu"}, rand((2, 3))),
    "LSTMCell": ((3, 4), {}, rand((2, 3))),
    "GRUCell": ((3, 4), {}, rand((2, 3))),
    "MultiheadAttention": ((4, 2), {"batch_first": True}, rand((2, 3, 4), (2, 3, 4), (2, 3, 4))),
    "RotaryEmbedding": ((4, 8), {"base": 10000.0}, rand((2, 2, 3, 4))),
    "Positions": ((8, 4), {"std": 0.02}, rand((2, 3, 4))),
    "SelfAttention": ((4, 2), {"kv_heads": 1, "rotary_steps": 8}, rand((2, 3, 4))),
    "TransformerEncoderLayer": ((4, 2, 8), {"dropout": 0.1}, rand((3, 2, 4))),
    "TransformerDecoderLayer": ((4, 2, 8), {"dropout": 0.1}, rand((3, 2, 4), (3, 2, 4))),
    "Transformer": ((4, 2, 1, 1, 8), {"activation": "gelu"}, rand((3, 2, 4), (3, 2, 4))),
    "PReLU": ((3,), {"init": 0.25}, rand((2, 3))),
    "GLU": ((-1,), {}, rand((2, 4))),
    "SwiGLU": ((-1,), {}, rand((2, 4))),
    "Softmax": ((1,), {}, rand((2, 4))),
    "LogSoftmax": ((1,), {}, rand((2, 4))),
    "Softmin": ((1,), {}, rand((2, 4))),
    "Hardtanh": ((-1.0, 1.0), {}, rand((2, 4))),
    "Threshold": ((0.1, 2.0), {}, rand((2, 4))),
    "SoftCap": ((5.0,), {}, rand((2, 4))),
    "LeakyReLU": ((0.1,), {}, rand((2, 4))),
    "ELU": ((1.0,), {}, rand((2, 4))),
    "CELU": ((1.0,), {}, rand((2, 4))),
    "GELU": (("tanh",), {}, rand((2, 4))),
    "Softplus": ((1.0, 20.0), {}, rand((2, 4))),
    "CrossEntropyLoss": ((), {"label_smoothing": 0.1}, classes(4, 3)),
    "NLLLoss": ((), {"ignore_index": -100}, classes(4, 3)),
    "MultiMarginLoss": ((1, 1.0), {}, classes(4, 3)),
    "MultiLabelMarginLoss": ((), {}, lambda: (engine.rand(1, 3), engine.tensor([[0, -1, 1]]))),
    "CosineEmbeddingLoss": ((0.1,), {}, signs((4, 3), (4, 3))),
    "MarginRankingLoss": ((0.1,), {}, signs((4,), (4,))),
    "HingeEmbeddingLoss": ((1.0,), {}, signs((4,))),
    "SoftMarginLoss": ((), {}, signs((4,))),
    "TripletMarginLoss": ((1.0, 2.0), {"swap": True}, rand((4, 3), (4, 3), (4, 3))),
    "TripletMarginWithDistanceLoss": ((), {"margin": 1.0}, rand((4, 3), (4, 3), (4, 3))),
    "GaussianNLLLoss": ((), {"eps": 1e-6}, rand((4, 3), (4, 3), (4, 3))),
    "CosineSimilarity": ((1,), {"eps": 1e-8}, rand((4, 3), (4, 3))),
    "PairwiseDistance": ((2.0,), {"eps": 1e-6}, rand((4, 3), (4, 3))),
}
# These hold other modules or parameters, so their arguments are made for each call.
HOLDERS: dict[str, tuple[Callable[[], list[Any]], Callable[[Any], Any]]] = {
    "Sequential": (lambda: [nn.Linear(3, 3), nn.ReLU()], lambda m: m(engine.rand(2, 3))),
    "ModuleList": (lambda: [[nn.Linear(3, 3), nn.ReLU()]], lambda m: (m[0], len(m), repr(m))),
    "ModuleDict": (lambda: [{"a": nn.ReLU()}], lambda m: (m["a"], list(m), repr(m))),
    "ParameterList": (lambda: [[nn.Parameter(engine.rand(2))]], lambda m: (m[0], repr(m))),
    "ParameterDict": (lambda: [{"a": nn.Parameter(engine.rand(2))}], lambda m: (m["a"], repr(m))),
    "Parameter": (lambda: [engine.rand(2, 3), True], lambda p: p * 2),
    "TransformerBlock": (lambda: [attention(), 8, "gelu"], lambda m: m(engine.rand(2, 3, 4))),
    "TransformerEncoder": (
        lambda: [nn.TransformerEncoderLayer(4, 2, 8), 2, nn.LayerNorm(4)],
        lambda m: m(engine.rand(3, 2, 4)),
    ),
    "TransformerDecoder": (
        lambda: [nn.TransformerDecoderLayer(4, 2, 8), 2, nn.LayerNorm(4)],
        lambda m: m(engine.rand(3, 2, 4), engine.rand(3, 2, 4)),
    ),
    "KeyValueCache": (lambda: [attention(), 8], generated),
}


@cache
def module_targets() -> dict[str, list[Target]]:
    """The constructor of each module of nn, followed by one call of the module."""
    targets = {}
    for name, kind in vars(nn).items():
        if name.startswith("_") or not isinstance(kind, type) or kind is nn.Module:
            continue
        targets[name] = [_holder(name) if name in HOLDERS else _plain(name, kind)]
    return targets


def _holder(name: str) -> Target:
    make, after = HOLDERS[name]
    kind = getattr(nn, name)
    return Target(f"nn.{name}", kind, lambda: (make(), {}), *declared(kind), after)


def _plain(name: str, kind: type) -> Target:
    two = name.endswith("Loss")
    args, named, inputs = ROWS.get(name, ((), {}, rand((2, 3), (2, 3)) if two else rand((2, 3))))

    def after(module: Any) -> None:
        tensors = inputs()
        first = tensors[0]
        if isinstance(first, Tensor) and first.is_floating_point():
            first.requires_grad_()
        backward(module(*tensors))
        repr(module)

    return Target(f"nn.{name}", kind, lambda: (list(args), dict(named)), *declared(kind), after)
