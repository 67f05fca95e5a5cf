"""Modules: layers with weights, containers, losses. torch.nn's names, arguments and results."""

import types

from gradcli.engine.nn import functional as functional
from gradcli.engine.nn import init as init
from gradcli.engine.nn.activation import *
from gradcli.engine.nn.attention import *
from gradcli.engine.nn.batch_norm import *
from gradcli.engine.nn.containers import *
from gradcli.engine.nn.conv import *
from gradcli.engine.nn.dropout import *
from gradcli.engine.nn.embedding import *
from gradcli.engine.nn.flatten import *
from gradcli.engine.nn.group_norm import *
from gradcli.engine.nn.instance_norm import *
from gradcli.engine.nn.key_value_cache import *
from gradcli.engine.nn.layer_norm import *
from gradcli.engine.nn.linear import *
from gradcli.engine.nn.lora import *
from gradcli.engine.nn.loss import *
from gradcli.engine.nn.module import *
from gradcli.engine.nn.padding import *
from gradcli.engine.nn.parameter import *
from gradcli.engine.nn.parameter_containers import *
from gradcli.engine.nn.pooling import *
from gradcli.engine.nn.positions import *
from gradcli.engine.nn.recurrent import *
from gradcli.engine.nn.recurrent_cell import *
from gradcli.engine.nn.resize import *
from gradcli.engine.nn.self_attention import *
from gradcli.engine.nn.steps import *
from gradcli.engine.nn.transformer import *
from gradcli.engine.nn.transformer_stack import *

# What holds layers or parameters, and what layers are made of.
_NO_LAYERS = (
    Module, StatefulModule, Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict,
)  # fmt: skip
LAYERS: dict[str, type[Module]] = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Module) and value not in _NO_LAYERS
}
__all__ = [
    name
    for name, value in globals().items()
    if name in ("functional", "init")
    or not (name.startswith("_") or isinstance(value, types.ModuleType))
]
