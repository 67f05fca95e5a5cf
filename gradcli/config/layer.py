"""A layer of YAML: the class that makes it, whose constructor is the schema of its keys.

What follows from the input need not be written. What leaves the layer, how many parameters it has
and what does not fit is learnt by running it on the device "meta", which computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Literal, NamedTuple

from gradcli import engine
from gradcli.config.fields import LinePadding, Padded, Padding, Sizes
from gradcli.config.row import Row
from gradcli.config.tensor_spec import TensorSpec, floats
from gradcli.engine import nn
from gradcli.engine.kind import Count, Positive, Share, Whole, members
from gradcli.errors import ShapeError

Make = Callable[[], nn.Module]
Follow = Callable[[TensorSpec], Any]

# What a layer may take: dimensions of a sample, and what they are called.
INPUTS = {
    "features": (1, "features"),
    "lines": (2, "lines (channels x length)"),
    "sequences": (2, "sequences (steps x features)"),
    "images": (3, "images (channels x height x width)"),
}
# Parameters of constructors that follow from the input.
FOLLOWING: dict[str, Follow] = {
    "sample": lambda x: x.shape,
    "num_embeddings": lambda x: x.vocab,
    **dict.fromkeys(("in_features", "input_size", "dim"), lambda x: x.shape[-1]),
    **dict.fromkeys(("in_channels", "num_features", "num_channels"), lambda x: x.shape[0]),
    "max_steps": lambda x: x.shape[0],
    "normalized_shape": lambda x: x.shape if len(x.shape) == 3 else x.shape[-1:],
}
# Types in YAML of parameters that take more in torch: sizes of 0, all dropped, lists of any length.
TYPES: dict[str, Any] = {
    **dict.fromkeys(("out_features", "out_channels"), Count),
    **dict.fromkeys(("p", "dropout"), Share),
    **dict.fromkeys(("eps", "std", "beta"), Positive),
    "padding_mode": Literal["zeros", "reflect", "replicate", "circular"],
}
LINES: dict[str, Any] = {
    **dict.fromkeys(("kernel_size", "stride", "dilation", "output_size"), Count),
    **dict.fromkeys(("padding", "output_padding"), Whole),
    "padding same": LinePadding,
}
IMAGES: dict[str, Any] = {
    **dict.fromkeys(("kernel_size", "stride", "dilation", "output_size"), Sizes),
    **dict.fromkeys(("padding", "output_padding"), Padded),
    "padding same": Padding,
}
BESIDE: dict[str, Any] = {"tied": str | None}  # keys of no constructor: the planner sees to them
LEFT_OUT = ("inplace", "dtype")  # parameters that are no keys


class Trial(NamedTuple):
    """What a layer says on an input: what leaves it, and its parameters."""

    output: TensorSpec
    parameters: int


class LayerSpec(Row):
    """A layer; what follows from the input is no key.

    Args:
        make: the class, or a function with its parameters; for numbers of any shape.
        keys, types: as in Row.
        forms: in place of `make`, by what goes in (INPUTS, indices, anything).
    """

    following: Mapping[str, Follow] = FOLLOWING

    def __init__(
        self,
        make: Callable[..., Any] | None = None,
        keys: str | None = None,
        types: Mapping[str, Any] | None = None,
        **forms: Any,
    ) -> None:
        self.forms = {"numbers": make} if make else forms
        first = next(iter(self.forms.values()))
        super().__init__(first, keys, leave={*LEFT_OUT, *self.following}, types=types)

    def _field(self, key: str, name: str) -> Parameter:
        parameter = self.parameters.get(name)
        if parameter is None:
            default, hint = None, BESIDE[key]
        elif name in self.following and key != name:
            default, hint = None, Count | None
        else:
            default, hint = self._typed(parameter)
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    def _typed(self, parameter: Parameter) -> tuple[Any, Any]:
        """Default and type in YAML; null stands for nothing but a default of None.

        Functions of the table name types of YAML themselves.
        """
        name, default, hint = parameter.name, parameter.default, parameter.annotation
        kinds = [kind for kind in members(hint) if kind is not type(None)]
        sizes = IMAGES if "images" in self.forms else LINES if "lines" in self.forms else {}
        types = {**TYPES, **sizes, **self.types} if isinstance(self.make, type) else {}
        name = f"{name} same" if name == "padding" and str in kinds else name
        if name in types:
            hint = types[name] | None if default is None else types[name]
        elif default is not None and len(kinds) == 1:
            [hint] = kinds
        return default, hint

    def maker(self, x: TensorSpec, values: Mapping[str, Any]) -> Make:
        """What makes the layer for an input; refuses one of another kind."""
        make = self._form(x)
        options = {self.keys[key]: value for key, value in values.items() if key not in BESIDE}
        for name, follow in self.following.items():
            if name in self.parameters and name not in self.keys:  # else it is chosen
                options[name] = _infer(options.get(name), follow(x))
        return lambda: make(**options)

    def _form(self, x: TensorSpec) -> Callable[..., Any]:
        if "anything" in self.forms:
            return self.make
        if "indices" in self.forms:
            if x.vocab is None:
                raise ShapeError(
                    f"needs indices, such as those of text; the input is numbers ({x})"
                )
            return self.make
        floats(x)
        for form, make in self.forms.items():
            if form not in INPUTS or INPUTS[form][0] == len(x.shape):
                return make
        needs = " or ".join(INPUTS[form][1] for form in self.forms)
        raise ShapeError(f"needs {needs}, got {x}")

    def run(self, make: Make, x: TensorSpec) -> Trial:
        """The layer made and run on two samples that are not there."""
        return run(make, x, "meta")

    def explain(self, message: str, x: TensorSpec) -> tuple[str, list[str]]:
        """A sentence of the engine in YAML's words, and the keys that it names."""
        message = re.sub(r"^\w+: ", "", message).replace(str((2, *x.shape)), str(x))
        key_of = {name: key for key, name in self.keys.items()}
        pattern = re.compile(rf"\b({'|'.join(key_of)})\b" if key_of else "(?!)")
        keys = [key_of[name] for name in pattern.findall(message)]
        return pattern.sub(lambda match: key_of[match.group()], message), keys


def _infer(size: int | None, value: Any) -> Any:
    """What follows from the input; a size that is in YAML although it is inferred must be that."""
    if size is not None and size != value:
        raise ShapeError(f"'in' says {size}, the input has {value}; leave 'in' out, it is inferred")
    return value


def run(make: Make, x: TensorSpec, device: str) -> Trial:
    """What a layer, made and run on a device, says of two samples."""
    generator = engine.default_generator
    state = generator.get_state()
    dtype = engine.float32 if x.vocab is None else engine.int64
    try:
        with engine.device(device), engine.no_grad():
            module = make()
            if not isinstance(module, nn.Module):
                raise ShapeError(
                    f"{type(module).__name__} is marked as a layer and is no nn.Module"
                )
            output = module(engine.zeros(2, *x.shape, dtype=dtype))
    finally:
        generator.set_state(*state)
    if not isinstance(output, engine.Tensor) or output.shape[:1] != (2,):
        shape = getattr(output, "shape", type(output).__name__)
        raise ShapeError(
            f"{type(module).__name__} must give a tensor with the batch in front: for 2 samples of "
            f"{x} it gave {shape}"
        )
    vocab = None if output.is_floating_point() else x.vocab
    return Trial(TensorSpec(output.shape[1:], vocab), sum(p.numel() for p in module.parameters()))
