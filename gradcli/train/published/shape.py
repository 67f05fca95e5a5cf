"""Read config.json of a published model: sizes, norms, positions and biases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, NoReturn

from gradcli.data.files import json_in, path_text
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import join_words, quantity

FILE = "config.json"
_LIMIT = 1 << 20  # bytes
_MOST = 1 << 24  # of anything that is counted
_MOST_LAYERS = 1024  # published models have 200 at most; each one of a config takes time
_WIDEST = 1 << 16  # features of a head: positions have an angle for each, whatever the weights are
Kind = Literal["gpt2", "llama"]
# Kinds of models by what their config.json calls them.
KINDS: dict[str, Kind] = {
    "gpt2": "gpt2",
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "llama",
    "qwen3": "llama",
}
_PLAIN = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
_GATED = {"silu": "swiglu", "swish": "swiglu"}
_WHOLE, _WINDOWED = "full_attention", "sliding_attention"  # layer_types
_FIRST_WINDOW = 28  # layer of Qwen with a window, where its file does not say
# What a value of the file looks like in a message, however long or deep it is.
_BRIEF = Repr()
_BRIEF.maxlevel, _BRIEF.maxdict, _BRIEF.maxstring = 3, 8, 60


@dataclass(frozen=True)
class Shape:
    """A model of transformer blocks between an embedding and a head.

    Attributes:
        kind: the naming scheme of its tensors.
        context: the most steps that it was trained on.
        inner: the units of the network in a block.
        tied: whether the head shares the embedding's weight.
        window: how many steps a step sees; None for all before it.
        end: the end-of-document token; None if the file names none.
    """

    kind: Kind
    vocab: int
    width: int
    layers: int
    heads: int
    context: int
    inner: int
    eps: float
    activation: str
    tied: bool
    kv_heads: int = 0
    head_dim: int = 0
    rotary_base: float = 10000.0
    qkv_bias: bool = False
    qk_norm: bool = False
    window: int | None = None
    end: int | None = None


def shape_in(folder: Path) -> Shape:
    """The shape of the model in a folder.

    Raises:
        DataError: config.json is missing, damaged, or of a model that is not read.
    """
    path = folder / FILE
    if not path.is_file():
        raise DataError(
            f"{path_text(folder)} holds no {FILE}; a model is a folder with {FILE}, "
            "model.safetensors and tokenizer.json"
        )
    values = json_in(path, _LIMIT)
    if not isinstance(values, dict):
        raise DataError(f"{path_text(path)}: expected an object", code="E304")
    entries = _Entries(values, path_text(path))
    name = entries.one_of("model_type", KINDS)
    return (_of_gpt2 if KINDS[name] == "gpt2" else _of_llama)(entries, name)


class _Entries:
    """The entries of config.json, each checked when it is read."""

    def __init__(self, values: Mapping[str, Any], source: str) -> None:
        self._values, self._source = values, source

    def within(self, name: str, values: Mapping[str, Any]) -> _Entries:
        """The entries of the object under `name`."""
        return _Entries(values, f"{self._source}, {name}")

    def refuse(self, what: str) -> NoReturn:
        raise DataError(f"{self._source}: {what}", code="E304")

    def get(self, name: str, default: Any = None) -> Any:
        value = self._values.get(name)
        return default if value is None else value

    def count(self, name: str, default: int | None = None, most: int = _MOST) -> int:
        value = self.get(name, default)
        if type(value) is not int or not 1 <= value <= most:
            self._reject(f"a whole number from 1 to {most}", name, value)
        return int(value)

    def number(self, name: str, default: float) -> float:
        value = self.get(name, default)
        if type(value) not in (int, float) or not 0 < value < 1e12:
            self._reject("a number above 0 and below 1e12", name, value)
        return float(value)

    def token(self, name: str) -> int | None:
        """The number of a token, or the first of several."""
        value = self.get(name)
        first = value[0] if isinstance(value, list) and value else value
        if first is not None and (type(first) is not int or not 0 <= first < _MOST):
            self._reject("the number of a token, or a list of them", name, value)
        return first

    def truth(self, name: str, default: bool) -> bool:
        value = self.get(name, default)
        if type(value) is not bool:
            self._reject("true or false", name, value)
        return bool(value)

    def one_of(self, name: str, names: Collection[str], default: str | None = None) -> str:
        value = self.get(name, default)
        if value is None:
            self.refuse(f"{name} is missing; read are {join_words(names)}")
        if not isinstance(value, str) or value not in names:
            self.refuse(f"{name} is {_BRIEF.repr(value)}; read are {join_words(names)}")
        return value

    def alone(self, name: str, *values: Any) -> None:
        """Raise if a value changes the computation in a way that gradcli does not support."""
        if self.get(name) not in (None, *values):
            self.refuse(f"{name} is {_BRIEF.repr(self.get(name))}, which is not built here")

    def divides(self, name: str, part: int, what: str, whole: int) -> None:
        if whole % part:
            self.refuse(f"{part} under {name!r} does not divide the {what} {whole} evenly")

    def _reject(self, what: str, name: str, value: Any) -> NoReturn:
        self.refuse(f"expected {what} under {name!r}, found {_BRIEF.repr(value)}")


def _of_gpt2(entries: _Entries, _: str) -> Shape:
    for name, values in (
        ("scale_attn_by_inverse_layer_idx", (False,)),
        ("scale_attn_weights", (True,)),
        ("add_cross_attention", (False,)),
    ):
        entries.alone(name, *values)
    width, heads = entries.count("n_embd"), entries.count("n_head")
    entries.divides("n_head", heads, "width", width)
    return Shape(
        kind="gpt2",
        vocab=entries.count("vocab_size"),
        width=width,
        layers=entries.count("n_layer", most=_MOST_LAYERS),
        heads=heads,
        context=entries.count("n_positions", entries.get("n_ctx")),
        inner=entries.count("n_inner", 4 * width),
        eps=entries.number("layer_norm_epsilon", 1e-5),
        activation=_PLAIN[entries.one_of("activation_function", _PLAIN, "gelu_new")],
        tied=entries.truth("tie_word_embeddings", True),
        qkv_bias=True,
        end=entries.token("eos_token_id"),
    )


def _of_llama(entries: _Entries, name: str) -> Shape:
    entries.alone("rope_scaling", {"rope_type": "default"}, {"type": "default"})
    entries.alone("mlp_bias", False)
    entries.alone("pretraining_tp", 1)
    if name != "qwen2":  # of which the key says nothing
        entries.alone("attention_bias", False)
    width, heads = entries.count("hidden_size"), entries.count("num_attention_heads")
    kv_heads = entries.count("num_key_value_heads", heads)
    layers = entries.count("num_hidden_layers", most=_MOST_LAYERS)
    entries.divides("num_key_value_heads", kv_heads, "number of heads", heads)
    return Shape(
        kind="llama",
        vocab=entries.count("vocab_size"),
        width=width,
        layers=layers,
        heads=heads,
        context=entries.count("max_position_embeddings", 2048),
        inner=entries.count("intermediate_size"),
        eps=entries.number("rms_norm_eps", 1e-6),
        activation=_GATED[entries.one_of("hidden_act", _GATED, "silu")],
        tied=entries.truth("tie_word_embeddings", False),
        kv_heads=kv_heads,
        head_dim=_head_size(entries, width, heads),
        rotary_base=_rotary_base(entries),
        qkv_bias=name == "qwen2",
        qk_norm=name == "qwen3",
        window=_window(entries, name, layers),
        end=entries.token("eos_token_id"),
    )


def _window(entries: _Entries, name: str, layers: int) -> int | None:
    """How many steps each layer sees, by `layer_types` or the keys of older files."""
    if entries.get("sliding_window") is None:
        return None
    kinds = entries.get("layer_types")
    if kinds is None:
        windowed = name == "mistral" or entries.truth("use_sliding_window", False)
        first = 0 if name == "mistral" else entries.get("max_window_layers", _FIRST_WINDOW)
        if type(first) is not int:
            entries.refuse(f"max_window_layers is {_BRIEF.repr(first)}; expected a whole number")
        kinds = [_WINDOWED if windowed and i >= first else _WHOLE for i in range(layers)]
    if kinds == [_WHOLE] * layers:
        return None
    if kinds != [_WINDOWED] * layers:
        entries.refuse(f"windows in some layers alone are not built here: {_BRIEF.repr(kinds)}")
    return entries.count("sliding_window")


def _rotary_base(entries: _Entries) -> float:
    """The rotary base, under its own key or, in newer files, in rope_parameters."""
    inner = entries.get("rope_parameters", {})
    if not isinstance(inner, dict):
        entries.refuse(f"expected an object under 'rope_parameters', found {_BRIEF.repr(inner)}")
    within = entries.within("rope_parameters", inner)
    within.alone("rope_type", "default")
    within.alone("partial_rotary_factor", 1.0)
    for key in sorted(inner.keys() - {"rope_type", "partial_rotary_factor", "rope_theta"}):
        within.alone(key)
    return within.number("rope_theta", entries.number("rope_theta", 10000.0))


def _head_size(entries: _Entries, width: int, heads: int) -> int:
    size = entries.count("head_dim", max(1, width // heads))
    if size % 2:
        entries.refuse(f"{quantity(size, 'feature')} a head, where rotary positions turn pairs")
    if size > _WIDEST:
        entries.refuse(f"{quantity(size, 'feature')} a head, of which at most {_WIDEST} are read")
    return size
