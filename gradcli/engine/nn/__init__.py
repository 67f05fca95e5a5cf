"""Modules: layers with weights, containers, losses. torch.nn's names, arguments and results."""

from gradcli.engine.nn import functional, init
from gradcli.engine.nn.activation import GELU, ReLU, Sigmoid, Softmax, Tanh
from gradcli.engine.nn.attention import MultiheadAttention
from gradcli.engine.nn.batch_norm import BatchNorm1d, BatchNorm2d
from gradcli.engine.nn.containers import ModuleDict, ModuleList, Sequential
from gradcli.engine.nn.conv import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from gradcli.engine.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d
from gradcli.engine.nn.embedding import Embedding
from gradcli.engine.nn.flatten import Flatten, Identity, Unflatten
from gradcli.engine.nn.group_norm import GroupNorm, LocalResponseNorm, RMSNorm
from gradcli.engine.nn.instance_norm import InstanceNorm1d, InstanceNorm2d
from gradcli.engine.nn.key_value_cache import KeyValueCache
from gradcli.engine.nn.layer_norm import LayerNorm
from gradcli.engine.nn.linear import Bilinear, Linear
from gradcli.engine.nn.loss import CrossEntropyLoss, MSELoss
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.parameter_containers import ParameterDict, ParameterList
from gradcli.engine.nn.pooling import AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from gradcli.engine.nn.positions import Positions, RotaryEmbedding
from gradcli.engine.nn.recurrent import GRU, LSTM, RNN
from gradcli.engine.nn.recurrent_cell import GRUCell, LSTMCell, RNNCell
from gradcli.engine.nn.self_attention import SelfAttention, TransformerBlock
from gradcli.engine.nn.transformer import TransformerDecoderLayer, TransformerEncoderLayer
from gradcli.engine.nn.transformer_stack import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

LAYERS: dict[str, type[Module]] = {
    "Linear": Linear,
    "Conv1d": Conv1d,
    "Conv2d": Conv2d,
    "ConvTranspose1d": ConvTranspose1d,
    "ConvTranspose2d": ConvTranspose2d,
    "MaxPool1d": MaxPool1d,
    "MaxPool2d": MaxPool2d,
    "AvgPool1d": AvgPool1d,
    "AvgPool2d": AvgPool2d,
    "Flatten": Flatten,
    "Dropout": Dropout,
    "BatchNorm1d": BatchNorm1d,
    "BatchNorm2d": BatchNorm2d,
    "LayerNorm": LayerNorm,
    "Embedding": Embedding,
    "RNN": RNN,
    "LSTM": LSTM,
    "GRU": GRU,
    "RNNCell": RNNCell,
    "LSTMCell": LSTMCell,
    "GRUCell": GRUCell,
    "Bilinear": Bilinear,
    "AlphaDropout": AlphaDropout,
    "Dropout1d": Dropout1d,
    "Dropout2d": Dropout2d,
    "Identity": Identity,
    "Unflatten": Unflatten,
    "GroupNorm": GroupNorm,
    "LocalResponseNorm": LocalResponseNorm,
    "RMSNorm": RMSNorm,
    "InstanceNorm1d": InstanceNorm1d,
    "InstanceNorm2d": InstanceNorm2d,
    "MultiheadAttention": MultiheadAttention,
    "RotaryEmbedding": RotaryEmbedding,
    "Positions": Positions,
    "TransformerEncoderLayer": TransformerEncoderLayer,
    "TransformerDecoderLayer": TransformerDecoderLayer,
    "TransformerEncoder": TransformerEncoder,
    "TransformerDecoder": TransformerDecoder,
    "Transformer": Transformer,
    "SelfAttention": SelfAttention,
    "TransformerBlock": TransformerBlock,
    "ReLU": ReLU,
    "GELU": GELU,
    "Tanh": Tanh,
    "Sigmoid": Sigmoid,
    "Softmax": Softmax,
    "CrossEntropyLoss": CrossEntropyLoss,
    "MSELoss": MSELoss,
}

__all__ = [
    "KeyValueCache",
    "SelfAttention",
    "TransformerBlock",
    "GRU",
    "LAYERS",
    "LSTM",
    "RNN",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "GRUCell",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Module",
    "MultiheadAttention",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Parameter",
    "Positions",
    "RNNCell",
    "ReLU",
    "RotaryEmbedding",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "functional",
    "Bilinear",
    "AlphaDropout",
    "Dropout1d",
    "Dropout2d",
    "Identity",
    "Unflatten",
    "GroupNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "init",
]
