"""The declared ops as functions, with their types: made by `gradcli ops --stub table`."""

from collections.abc import Callable
from collections.abc import Sequence
from gradcli.engine import dtype as dtypes
from gradcli.engine.autograd import Some
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative
from gradcli.engine.kind import Number
from gradcli.engine.kind import OneDim
from gradcli.engine.kind import Operand
from gradcli.engine.kind import Portion
from gradcli.engine.kind import Sizes
from gradcli.engine.kind import Whole
from gradcli.engine.random import Draw
from gradcli.engine.random import Generator
from gradcli.engine.result import Extreme
from gradcli.engine.result import Sorted
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.registry import Registry
from typing import Any
from typing import Literal
from typing import overload
import builtins

OPS: Registry[Callable[..., Any]]
def enter(name: str, function: Callable[..., object]) -> None: ...
@overload
def abs(x: Tensor) -> Tensor:
    """|x|; the gradient at 0 is 0."""
@overload
def abs(*, input: Tensor) -> Tensor: ...
def abs_(input: Tensor) -> Tensor:
    """The result of `abs`, written over the input."""
@overload
def acos(x: Tensor) -> Tensor:
    """The angle whose cosine is x."""
@overload
def acos(*, input: Tensor) -> Tensor: ...
def acos_(input: Tensor) -> Tensor:
    """The result of `acos`, written over the input."""
def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """The mean of each window, of which there are `output_size`."""
def adaptive_avg_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """The mean of each window, of which there are `output_size`."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[False]=False) -> Tensor:
    """The largest number of each window; with return_indices also its index in its channel."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool=False) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> tuple[Tensor, Tensor]:
    """The largest number of each window, and its index in its channel; the first of equals."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[False]=False) -> Tensor:
    """The largest number of each window; with return_indices also its index in its channel."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None, return_indices: builtins.bool=False) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None) -> tuple[Tensor, Tensor]:
    """The largest number of each window, and its index in its channel; the first of equals."""
@overload
def add(input: Tensor, other: Operand, alpha: builtins.float=1) -> Tensor:
    """input + other, which is multiplied by alpha first."""
@overload
def add(input: Operand, other: Tensor, alpha: builtins.float=1) -> Tensor: ...
def add_(input: Tensor, other: Operand, *, alpha: builtins.float=1) -> Tensor:
    """The elements of input + alpha * other, written over the input."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float=1) -> Tensor:
    """The input plus value * tensor1 / tensor2."""
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float=1) -> Tensor:
    """The result of `addcdiv`, written over the input."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float=1) -> Tensor:
    """The input plus value * tensor1 * tensor2."""
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float=1) -> Tensor:
    """The result of `addcmul`, written over the input."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.float=1, alpha: builtins.float=1) -> Tensor:
    """The matrix beta input + alpha mat1 @ mat2; the input is broadcast."""
def addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.float=1, alpha: builtins.float=1) -> Tensor:
    """The result of `addmm`, written over the input."""
@overload
def affine(x: Tensor, maps: Tensor) -> Tensor:
    """y[i, j] = x at row m0 i + m1 j + m2 and column m3 i + m4 j + m5: bilinear, 0 outside."""
@overload
def affine(*, input: Tensor, maps: Tensor) -> Tensor: ...
def all(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False) -> Tensor:
    """Whether every element over `dim`, or over everything, is not 0."""
def allclose(input: Tensor, other: Tensor, rtol: NotNegative=1e-05, atol: NotNegative=1e-08, equal_nan: builtins.bool=False) -> builtins.bool:
    """Whether isclose holds for every element."""
def alpha_dropout(input: Tensor, p: builtins.float=0.5, training: builtins.bool=False, inplace: builtins.bool=False) -> Tensor:
    """Dropout to where SELU ends instead of 0; mean and variance stay (Klambauer et al. 2017)."""
@overload
def amax(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=(), keepdim: builtins.bool=False) -> Tensor:
    """The largest of x over `dim`, or over everything; ties share the gradient evenly."""
@overload
def amax(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=(), keepdim: builtins.bool=False) -> Tensor: ...
@overload
def amin(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=(), keepdim: builtins.bool=False) -> Tensor:
    """The smallest of x over `dim`, or over everything; ties share the gradient evenly."""
@overload
def amin(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=(), keepdim: builtins.bool=False) -> Tensor: ...
def aminmax(input: Tensor, *, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest along `dim`, or of everything."""
def any(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False) -> Tensor:
    """Whether an element over `dim`, or over everything, is not 0."""
def arange(start: builtins.float=0, end: builtins.float | None=None, step: builtins.float=1, *, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """Evenly spaced numbers: start, start + step, ... below end; with one argument from 0."""
@overload
def argmax(x: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor:
    """Where the largest lies along `dim`, or in the flat x; the first of several."""
@overload
def argmax(*, input: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor: ...
@overload
def argmin(x: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor:
    """Where the smallest lies along `dim`, or in the flat x; the first of several."""
@overload
def argmin(*, input: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor: ...
def argsort(input: Tensor, dim: builtins.int=-1, descending: builtins.bool=False, stable: builtins.bool=True) -> Tensor:
    """The indices of the elements along `dim` in their order."""
def argwhere(input: Tensor) -> Tensor:
    """Places of the elements that are not 0, one a row."""
@overload
def asin(x: Tensor) -> Tensor:
    """The angle whose sine is x."""
@overload
def asin(*, input: Tensor) -> Tensor: ...
def asin_(input: Tensor) -> Tensor:
    """The result of `asin`, written over the input."""
@overload
def atan(x: Tensor) -> Tensor:
    """The angle whose tangent is x."""
@overload
def atan(*, input: Tensor) -> Tensor: ...
@overload
def atan2(input: Tensor, other: Operand) -> Tensor:
    """The angle of the point (other, input), from -pi to pi."""
@overload
def atan2(input: Operand, other: Tensor) -> Tensor: ...
@overload
def atan2_(input: Tensor, other: Operand) -> Tensor:
    """The result of `atan2`, written over the input."""
@overload
def atan2_(input: Operand, other: Tensor) -> Tensor: ...
def atan_(input: Tensor) -> Tensor:
    """The result of `atan`, written over the input."""
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """As they are, a number as a vector."""
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """As they are, a number or a vector as a row."""
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """As they are, a vector as (1, n, 1), a matrix as (n, m, 1)."""
def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, ceil_mode: builtins.bool=False, count_include_pad: builtins.bool=True) -> Tensor:
    """The sum of each window over the number of its elements."""
def avg_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, ceil_mode: builtins.bool=False, count_include_pad: builtins.bool=True, divisor_override: builtins.int | None=None) -> Tensor:
    """The sum of each window over the number of its pixels."""
def backward(tensors: Some, grad_tensors: Tensor | Sequence[Tensor | None] | None=None, retain_graph: builtins.bool | None=None, create_graph: builtins.bool=False, inputs: Some | None=None) -> None:
    """Add the gradients of the tensors, times `grad_tensors`, to those of the leaves."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float=1, alpha: builtins.float=1) -> Tensor:
    """The matrices beta input + alpha batch1 @ batch2; the input is broadcast."""
def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float=1, alpha: builtins.float=1) -> Tensor:
    """The result of `baddbmm`, written over the input."""
@overload
def batch_norm(x: Tensor, running_mean: Tensor | None=None, running_var: Tensor | None=None, weight: Tensor | None=None, bias: Tensor | None=None, training: builtins.bool=False, momentum: builtins.float=0.1, eps: NotNegative=1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of (N, C, ...)."""
@overload
def batch_norm(*, input: Tensor, running_mean: Tensor | None=None, running_var: Tensor | None=None, weight: Tensor | None=None, bias: Tensor | None=None, training: builtins.bool=False, momentum: builtins.float=0.1, eps: NotNegative=1e-05) -> Tensor: ...
def bernoulli(input: Tensor, p: builtins.float | None=None, *, generator: Generator | None=None) -> Tensor:
    """1 with the probability that the element is, or p for all, otherwise 0."""
def bernoulli_(input: Tensor, p: Tensor | builtins.float=0.5, *, generator: Generator | None=None) -> Tensor:
    """Every element overwritten by 1 with probability p, otherwise by 0."""
def bfloat16(input: Tensor) -> Tensor:
    """The tensor as bfloat16, to nearest, ties to even."""
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None=None) -> Tensor:
    """input1 weight[k] input2 + bias[k] for each matrix k of weight (out, in1, in2)."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None=None, reduction: str='mean') -> Tensor:
    """Mean of -target log(input) - (1 - target) log(1 - input); logarithms end at -100."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None=None, pos_weight: Tensor | None=None, reduction: str='mean') -> Tensor:
    """Mean of log(1 + exp(input)) - target input: binary_cross_entropy of sigmoid(input)."""
def bincount(input: Tensor, weights: Tensor | None=None, minlength: Whole=0) -> Tensor:
    """How often each whole number from 0 on occurs; or the sum of its weights."""
@overload
def bitwise_and(input: Tensor, other: Operand) -> Tensor:
    """Bits that both have; of truth values whether both are true."""
@overload
def bitwise_and(input: Operand, other: Tensor) -> Tensor: ...
@overload
def bitwise_and_(input: Tensor, other: Operand) -> Tensor:
    """The result of `bitwise_and`, written over the input."""
@overload
def bitwise_and_(input: Operand, other: Tensor) -> Tensor: ...
def bitwise_not(input: Tensor) -> Tensor:
    """All bits turned round; of truth values whether they are false."""
def bitwise_not_(input: Tensor) -> Tensor:
    """The result of `bitwise_not`, written over the input."""
@overload
def bitwise_or(input: Tensor, other: Operand) -> Tensor:
    """Bits that one has; of truth values whether one is true."""
@overload
def bitwise_or(input: Operand, other: Tensor) -> Tensor: ...
@overload
def bitwise_or_(input: Tensor, other: Operand) -> Tensor:
    """The result of `bitwise_or`, written over the input."""
@overload
def bitwise_or_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def bitwise_xor(input: Tensor, other: Operand) -> Tensor:
    """Bits that differ; of truth values whether they differ."""
@overload
def bitwise_xor(input: Operand, other: Tensor) -> Tensor: ...
@overload
def bitwise_xor_(input: Tensor, other: Operand) -> Tensor:
    """The result of `bitwise_xor`, written over the input."""
@overload
def bitwise_xor_(input: Operand, other: Tensor) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices, without broadcasting."""
def bool(input: Tensor) -> Tensor:
    """False where 0, otherwise True."""
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All expanded to their common shape, as views."""
def broadcast_to(input: Tensor, size: Sequence[builtins.int]) -> Tensor:
    """The input repeated to a shape, as a view."""
def bucketize(input: Tensor | builtins.float, boundaries: Tensor, *, out_int32: builtins.bool=False, right: builtins.bool=False) -> Tensor:
    """The number of boundaries below each number, or with `right` those not above it."""
@overload
def cast(x: Tensor, dtype: DType) -> Tensor:
    """The same numbers as another element type."""
@overload
def cast(*, input: Tensor, dtype: DType) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: builtins.int=0) -> Tensor:
    """Tensors behind one another along `dim`; their other sizes must be equal."""
@overload
def ceil(x: Tensor) -> Tensor:
    """The smallest whole number not below x."""
@overload
def ceil(*, input: Tensor) -> Tensor: ...
def ceil_(input: Tensor) -> Tensor:
    """The result of `ceil`, written over the input."""
@overload
def celu(x: Tensor, alpha: builtins.float=1.0) -> Tensor:
    """The element where it is positive, otherwise alpha * (exp(x / alpha) - 1) (Barron 2017)."""
@overload
def celu(*, input: Tensor, alpha: builtins.float=1.0) -> Tensor: ...
def celu_(input: Tensor, alpha: builtins.float=1.0) -> Tensor:
    """The result of `celu`, written over the input."""
def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int=0) -> tuple[Tensor, ...]:
    """At most `chunks` views along `dim`, of one size but the last, which may be shorter."""
@overload
def clamp(x: Tensor, min: Tensor | builtins.float | None=None, max: Tensor | builtins.float | None=None) -> Tensor:
    """The element held between min and max, max where min is more; NaN stays NaN."""
@overload
def clamp(*, input: Tensor, min: Tensor | builtins.float | None=None, max: Tensor | builtins.float | None=None) -> Tensor: ...
def clamp_(input: Tensor, min: Tensor | builtins.float | None=None, max: Tensor | builtins.float | None=None) -> Tensor:
    """The input held between min and max, in place."""
def clamp_max(input: Tensor, max: Tensor | builtins.float) -> Tensor:
    """The element, or max where that is less."""
def clamp_max_(input: Tensor, max: Tensor | builtins.float) -> Tensor:
    """The result of `clamp_max`, written over the input."""
def clamp_min(input: Tensor, min: Tensor | builtins.float) -> Tensor:
    """The element, or min where that is more."""
def clamp_min_(input: Tensor, min: Tensor | builtins.float) -> Tensor:
    """The result of `clamp_min`, written over the input."""
def clip(input: Tensor, min: Tensor | builtins.float | None=None, max: Tensor | builtins.float | None=None) -> Tensor:
    """The same as clamp."""
def clip_(input: Tensor, min: Tensor | builtins.float | None=None, max: Tensor | builtins.float | None=None) -> Tensor:
    """The result of `clip`, written over the input."""
@overload
def clone(x: Tensor) -> Tensor:
    """The same elements in memory of their own; gradients pass through."""
@overload
def clone(*, input: Tensor) -> Tensor: ...
def col2im(input: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int]=0, stride: builtins.int | Sequence[builtins.int]=1) -> Tensor:
    """Columns (N, C * window, windows) laid back into images and added up: F.fold."""
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side; a vector is a column."""
def concat(tensors: Sequence[Tensor], dim: builtins.int=0) -> Tensor:
    """Tensors behind one another along `dim`; their other sizes must be equal."""
@overload
def constant_pad_nd(x: Tensor, pad: Sequence[builtins.int], value: Number=0) -> Tensor:
    """Borders of one value, as `pad` says of its mode "constant"."""
@overload
def constant_pad_nd(*, input: Tensor, pad: Sequence[builtins.int], value: Number=0) -> Tensor: ...
def contiguous(input: Tensor) -> Tensor:
    """The tensor itself when its elements lie in order, otherwise a copy where they do."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None=None, stride: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int] | str=0, dilation: builtins.int | Sequence[builtins.int]=1, groups: builtins.int=1) -> Tensor:
    """The product of each filter with each window, summed, plus the filter's bias."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None=None, stride: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int] | str=0, dilation: builtins.int | Sequence[builtins.int]=1, groups: builtins.int=1) -> Tensor:
    """The product of each filter with each window, summed, plus the filter's bias."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None=None, stride: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int]=0, output_padding: builtins.int | Sequence[builtins.int]=0, groups: builtins.int=1, dilation: builtins.int | Sequence[builtins.int]=1) -> Tensor:
    """Each number times each filter, `stride` apart and summed where they overlap, plus bias."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None=None, stride: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int]=0, output_padding: builtins.int | Sequence[builtins.int]=0, groups: builtins.int=1, dilation: builtins.int | Sequence[builtins.int]=1) -> Tensor:
    """Each number times each filter, `stride` apart and summed where they overlap, plus bias."""
@overload
def cos(x: Tensor) -> Tensor:
    """Cosine of x, in radians."""
@overload
def cos(*, input: Tensor) -> Tensor: ...
def cos_(input: Tensor) -> Tensor:
    """The result of `cos`, written over the input."""
@overload
def cosh(x: Tensor) -> Tensor:
    """Hyperbolic cosine of x."""
@overload
def cosh(*, input: Tensor) -> Tensor: ...
def cosh_(input: Tensor) -> Tensor:
    """The result of `cosh`, written over the input."""
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float=0.0, reduction: str='mean') -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, of two rows each."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int=1, eps: NotNegative=1e-08) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`; no length counts as below eps."""
def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None) -> Tensor:
    """How many elements are not 0 over `dim`, or over everything."""
def cross(input: Tensor, other: Tensor, dim: builtins.int | None=None) -> Tensor:
    """The vectors at right angles to those of length 3 along `dim`; the first such dim without."""
@overload
def cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None=None, ignore_index: builtins.int=-100, reduction: str='mean', label_smoothing: builtins.float=0.0) -> Tensor:
    """Minus log softmax(x) at the target class of each sample, x (N, C, ...) or (C,)."""
@overload
def cross_entropy(*, input: Tensor, target: Tensor, weight: Tensor | None=None, ignore_index: builtins.int=-100, reduction: str='mean', label_smoothing: builtins.float=0.0) -> Tensor: ...
def cummax(input: Tensor, dim: builtins.int) -> Sorted:
    """The largest element so far along `dim`, and the index of its last occurrence; NaN wins."""
def cummin(input: Tensor, dim: builtins.int) -> Sorted:
    """The smallest element so far along `dim`, and the index of its last occurrence; NaN wins."""
def cumprod(input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """The product of each element and all before it along `dim`."""
def cumprod_(input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """The result of `cumprod`, written over the input."""
def cumsum(input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """The sum of each element and all before it along `dim`."""
def cumsum_(input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """The result of `cumsum`, written over the input."""
def diag(input: Tensor, diagonal: builtins.int=0) -> Tensor:
    """A diagonal of a matrix, as a copy; of a vector the matrix with it on that diagonal."""
@overload
def diag_embed(x: Tensor, offset: builtins.int=0, dim1: builtins.int=-2, dim2: builtins.int=-1) -> Tensor:
    """Square matrices in two new dims, with the last dimension of x on a diagonal, 0 elsewhere."""
@overload
def diag_embed(*, input: Tensor, offset: builtins.int=0, dim1: builtins.int=-2, dim2: builtins.int=-1) -> Tensor: ...
@overload
def diagonal(x: Tensor, offset: builtins.int=0, dim1: builtins.int=0, dim2: builtins.int=1) -> Tensor:
    """A view of the diagonals of two dims, as the last dimension; offset counts upwards."""
@overload
def diagonal(*, input: Tensor, offset: builtins.int=0, dim1: builtins.int=0, dim2: builtins.int=1) -> Tensor: ...
def diff(input: Tensor, n: Whole=1, dim: builtins.int=-1, prepend: Tensor | None=None, append: Tensor | None=None) -> Tensor:
    """Each element minus the one before it along `dim`, n times over; first, ends are joined on."""
@overload
def div(input: Tensor, other: Operand, rounding_mode: Literal['trunc', 'floor'] | None=None) -> Tensor:
    """input / other; whole numbers give floats, unless the quotient is rounded to a whole one."""
@overload
def div(input: Operand, other: Tensor, rounding_mode: Literal['trunc', 'floor'] | None=None) -> Tensor: ...
def div_(input: Tensor, other: Operand, *, rounding_mode: Literal['trunc', 'floor'] | None=None) -> Tensor:
    """The elements of input / other, written over the input."""
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
def double(input: Tensor) -> Tensor:
    """The tensor as float64."""
@overload
def dropout(x: Tensor, p: builtins.float=0.5, training: builtins.bool=True, inplace: builtins.bool=False, draw: Draw | None=None) -> Tensor:
    """While training, each element times 0 with probability p, otherwise times 1 / (1 - p)."""
@overload
def dropout(*, input: Tensor, p: builtins.float=0.5, training: builtins.bool=True, inplace: builtins.bool=False, draw: Draw | None=None) -> Tensor: ...
def dropout1d(input: Tensor, p: builtins.float=0.5, training: builtins.bool=True, inplace: builtins.bool=False) -> Tensor:
    """While training, whole channels of (N, C, L) or (C, L) become 0 with probability p."""
def dropout2d(input: Tensor, p: builtins.float=0.5, training: builtins.bool=True, inplace: builtins.bool=False) -> Tensor:
    """While training, whole channels of (N, C, H, W) become 0 with probability p."""
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind one another along the third dimension."""
def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products: 'ij,jk->ik' multiplies matrices; letters not in the result are summed over."""
@overload
def elu(x: Tensor, alpha: builtins.float=1.0) -> Tensor:
    """The element where it is positive, otherwise alpha * (exp(x) - 1) (Clevert et al. 2015)."""
@overload
def elu(*, input: Tensor, alpha: builtins.float=1.0) -> Tensor: ...
def elu_(input: Tensor, alpha: builtins.float=1.0) -> Tensor:
    """The result of `elu`, written over the input."""
@overload
def embedding(indices: Tensor, weight: Tensor, padding_idx: builtins.int | None=None) -> Tensor:
    """Rows of weight (V, D) by index: (..., D). Row `padding_idx` gets no gradient."""
@overload
def embedding(*, input: Tensor, weight: Tensor, padding_idx: builtins.int | None=None) -> Tensor: ...
def empty_like(input: Tensor, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """Undefined values in the shape and type of another tensor."""
@overload
def eq(input: Tensor, other: Operand) -> Tensor:
    """input == other."""
@overload
def eq(input: Operand, other: Tensor) -> Tensor: ...
@overload
def eq_(input: Tensor, other: Operand) -> Tensor:
    """The result of `eq`, written over the input."""
@overload
def eq_(input: Operand, other: Tensor) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether both have the same shape and the same elements."""
@overload
def erf(x: Tensor) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) up to x."""
@overload
def erf(*, input: Tensor) -> Tensor: ...
def erf_(input: Tensor) -> Tensor:
    """The result of `erf`, written over the input."""
@overload
def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), exact for large x too."""
@overload
def erfc(*, input: Tensor) -> Tensor: ...
def erfc_(input: Tensor) -> Tensor:
    """The result of `erfc`, written over the input."""
@overload
def exp(x: Tensor) -> Tensor:
    """e to the power x."""
@overload
def exp(*, input: Tensor) -> Tensor: ...
@overload
def exp2(x: Tensor) -> Tensor:
    """2 to the power x."""
@overload
def exp2(*, input: Tensor) -> Tensor: ...
def exp2_(input: Tensor) -> Tensor:
    """The result of `exp2`, written over the input."""
def exp_(input: Tensor) -> Tensor:
    """The result of `exp`, written over the input."""
@overload
def expand(x: Tensor, *size: Sizes) -> Tensor:
    """A view that repeats size-1 and missing dimensions; -1 keeps a size."""
@overload
def expand(x: Tensor, size: Shape) -> Tensor: ...
@overload
def expand(*, input: Tensor, size: Shape) -> Tensor: ...
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The input repeated to the shape of another tensor, as a view."""
@overload
def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1, exact for small x too."""
@overload
def expm1(*, input: Tensor) -> Tensor: ...
def expm1_(input: Tensor) -> Tensor:
    """The result of `expm1`, written over the input."""
def eye(n: builtins.int, m: builtins.int | None=None, *, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """A matrix (n, m) with 1 on the main diagonal and 0 elsewhere."""
def fill_(input: Tensor, value: Number) -> Tensor:
    """Overwrite every element with one value."""
@overload
def flat_index(index: Tensor, before: Tensor | None=None, *, size: builtins.int) -> Tensor:
    """Indices counted from 0 and in one dimension; negative ones count from the end."""
@overload
def flat_index(*, input: Tensor, before: Tensor | None=None, size: builtins.int) -> Tensor: ...
def flatten(input: Tensor, start_dim: builtins.int=0, end_dim: builtins.int=-1) -> Tensor:
    """Dimensions start_dim to end_dim merged into one."""
@overload
def flip(x: Tensor, *dims: Sizes) -> Tensor:
    """The elements in reverse order along `dims`, as a copy."""
@overload
def flip(x: Tensor, dims: Sequence[builtins.int]) -> Tensor: ...
@overload
def flip(*, input: Tensor, dims: Sequence[builtins.int]) -> Tensor: ...
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
def float(input: Tensor) -> Tensor:
    """The tensor as float32."""
@overload
def floor(x: Tensor) -> Tensor:
    """The largest whole number not above x."""
@overload
def floor(*, input: Tensor) -> Tensor: ...
def floor_(input: Tensor) -> Tensor:
    """The result of `floor`, written over the input."""
@overload
def floor_divide(input: Tensor, other: Operand) -> Tensor:
    """The largest whole number not above input / other."""
@overload
def floor_divide(input: Operand, other: Tensor) -> Tensor: ...
@overload
def floor_divide_(input: Tensor, other: Operand) -> Tensor:
    """The result of `floor_divide`, written over the input."""
@overload
def floor_divide_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def fmod(input: Tensor, other: Operand) -> Tensor:
    """What is left of input when other is taken off trunc(input / other) times; input's sign."""
@overload
def fmod(input: Operand, other: Tensor) -> Tensor: ...
@overload
def fmod_(input: Tensor, other: Operand) -> Tensor:
    """The result of `fmod`, written over the input."""
@overload
def fmod_(input: Operand, other: Tensor) -> Tensor: ...
def format(input: Tensor) -> str:
    """tensor(...) with its numbers, its type where unusual, and whether it has a history."""
@overload
def frac(x: Tensor) -> Tensor:
    """The element minus trunc of it."""
@overload
def frac(*, input: Tensor) -> Tensor: ...
def frac_(input: Tensor) -> Tensor:
    """The result of `frac`, written over the input."""
def full_like(input: Tensor, fill_value: Number, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """One value everywhere, in the shape and type of another tensor."""
@overload
def gather(x: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """x[..., index[..., j, ...], ...]: along `dim` the element that index names, in its shape."""
@overload
def gather(x: Tensor, index: Tensor, dim: builtins.int) -> Tensor: ...
@overload
def gather(*, input: Tensor, dim: builtins.int, index: Tensor) -> Tensor: ...
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | NotNegative, full: builtins.bool=False, eps: NotNegative=1e-06, reduction: str='mean') -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, var at least eps; with full, + log(2 pi) / 2."""
@overload
def ge(input: Tensor, other: Operand) -> Tensor:
    """input >= other."""
@overload
def ge(input: Operand, other: Tensor) -> Tensor: ...
@overload
def ge_(input: Tensor, other: Operand) -> Tensor:
    """The result of `ge`, written over the input."""
@overload
def ge_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def gelu(x: Tensor, approximate: str='none') -> Tensor:
    """The element times the normal distribution's share below it (Hendrycks and Gimpel 2016)."""
@overload
def gelu(*, input: Tensor, approximate: str='none') -> Tensor: ...
def get_rng_state() -> Tensor:
    """Where the default generator stands: int64 (key, step, draws made)."""
@overload
def getitem(x: Tensor, index: Any) -> Tensor:
    """A view of part of x: whole numbers, slices, None and Ellipsis, as in torch."""
@overload
def getitem(*, input: Tensor, index: Any) -> Tensor: ...
def getitem_by_tensor(input: Tensor, index: Any) -> Tensor:
    """Part of a tensor by index tensors, masks and lists, beside slices and numbers; a copy."""
def glu(input: Tensor, dim: builtins.int=-1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al. 2016)."""
@overload
def group_norm(x: Tensor, num_groups: builtins.int, weight: Tensor | None=None, bias: Tensor | None=None, eps: builtins.float=1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, over each group of channels of each sample."""
@overload
def group_norm(x: Tensor, weight: Tensor | None=None, bias: Tensor | None=None, *, num_groups: builtins.int, eps: builtins.float=1e-05) -> Tensor: ...
@overload
def group_norm(*, input: Tensor, num_groups: builtins.int, weight: Tensor | None=None, bias: Tensor | None=None, eps: builtins.float=1e-05) -> Tensor: ...
@overload
def gru_steps(x: Tensor, w_hh: Tensor, b_hh: Tensor | None=None, h0: Tensor | None=None, batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """At each step h = (1 - z) n + z h; r, z = sigmoid, n = tanh, where n takes h w_hh times r."""
@overload
def gru_steps(*, input: Tensor, w_hh: Tensor, b_hh: Tensor | None=None, h0: Tensor | None=None, batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor]: ...
@overload
def gt(input: Tensor, other: Operand) -> Tensor:
    """input > other."""
@overload
def gt(input: Operand, other: Tensor) -> Tensor: ...
@overload
def gt_(input: Tensor, other: Operand) -> Tensor:
    """The result of `gt`, written over the input."""
@overload
def gt_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def hardsigmoid(x: Tensor) -> Tensor:
    """(x + 3) / 6, held between 0 and 1."""
@overload
def hardsigmoid(*, input: Tensor) -> Tensor: ...
@overload
def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x) (Howard et al. 2019)."""
@overload
def hardswish(*, input: Tensor) -> Tensor: ...
@overload
def hardtanh(x: Tensor, min_val: builtins.float=-1.0, max_val: builtins.float=1.0) -> Tensor:
    """The element held between min_val and max_val; at the ends the gradient is 0."""
@overload
def hardtanh(*, input: Tensor, min_val: builtins.float=-1.0, max_val: builtins.float=1.0) -> Tensor: ...
def hardtanh_(input: Tensor, min_val: builtins.float=-1.0, max_val: builtins.float=1.0) -> Tensor:
    """The result of `hardtanh`, written over the input."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: builtins.float=1.0, reduction: str='mean') -> Tensor:
    """The input, a distance, where target is 1; max(0, margin - input) where it is -1."""
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along the columns, for vectors along their only dimension."""
def huber_loss(input: Tensor, target: Tensor, reduction: str='mean', delta: builtins.float=1.0) -> Tensor:
    """Mean of d^2 / 2 where d = |input - target| is at most delta, otherwise delta (d - delta / 2)."""
@overload
def hypot(input: Tensor, other: Operand) -> Tensor:
    """The root of input^2 + other^2."""
@overload
def hypot(input: Operand, other: Tensor) -> Tensor: ...
@overload
def hypot_(input: Tensor, other: Operand) -> Tensor:
    """The result of `hypot`, written over the input."""
@overload
def hypot_(input: Operand, other: Tensor) -> Tensor: ...
def im2col(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int]=1, padding: builtins.int | Sequence[builtins.int]=0, stride: builtins.int | Sequence[builtins.int]=1) -> Tensor:
    """Windows of images (N, C, H, W) as columns (N, C * window, windows): F.unfold."""
@overload
def index_add(x: Tensor, dim: builtins.int, index: Tensor, source: Tensor, alpha: builtins.float=1) -> Tensor:
    """The input with alpha times the slices of source added to those that index names."""
@overload
def index_add(x: Tensor, index: Tensor, source: Tensor, dim: builtins.int, alpha: builtins.float=1) -> Tensor: ...
@overload
def index_add(*, input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, alpha: builtins.float=1) -> Tensor: ...
@overload
def index_add_(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, alpha: builtins.float=1) -> Tensor:
    """The result of `index_add`, written over the input."""
@overload
def index_add_(input: Tensor, index: Tensor, source: Tensor, dim: builtins.int, alpha: builtins.float=1) -> Tensor: ...
@overload
def index_copy(x: Tensor, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
    """The input with the slices that index names replaced by those of source; the last stays."""
@overload
def index_copy(x: Tensor, index: Tensor, source: Tensor, dim: builtins.int) -> Tensor: ...
@overload
def index_copy(*, input: Tensor, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: ...
@overload
def index_copy_(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
    """The result of `index_copy`, written over the input."""
@overload
def index_copy_(input: Tensor, index: Tensor, source: Tensor, dim: builtins.int) -> Tensor: ...
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Operand) -> Tensor:
    """The input with one value in the slices along `dim` that index names."""
def index_fill_(input: Tensor, dim: builtins.int, index: Tensor, value: Operand) -> Tensor:
    """The result of `index_fill`, written over the input."""
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool=False) -> Tensor:
    """A copy with values put where the index tensors say; or added there, one after another."""
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool=False) -> Tensor:
    """Values put where the index tensors say, or added there, written over the input."""
@overload
def index_select(x: Tensor, dim: builtins.int, index: Tensor) -> Tensor:
    """The slices of x along `dim` that `index` (one dimension) names, in its order."""
@overload
def index_select(x: Tensor, index: Tensor, dim: builtins.int) -> Tensor: ...
@overload
def index_select(*, input: Tensor, dim: builtins.int, index: Tensor) -> Tensor: ...
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dimension of both, for each pair of their rows."""
def instance_norm(input: Tensor, running_mean: Tensor | None=None, running_var: Tensor | None=None, weight: Tensor | None=None, bias: Tensor | None=None, use_input_stats: builtins.bool=True, momentum: builtins.float=0.1, eps: NotNegative=1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, over each channel of each sample."""
def int(input: Tensor) -> Tensor:
    """The tensor as int32."""
def interpolate(input: Tensor, size: builtins.int | Sequence[builtins.int] | None=None, scale_factor: builtins.float | Sequence[builtins.float] | None=None, mode: str='nearest', align_corners: builtins.bool | None=None, recompute_scale_factor: builtins.bool | None=None) -> Tensor:
    """Each output the nearest pixel, or on the straight lines between its neighbours."""
def isclose(input: Tensor, other: Tensor, rtol: NotNegative=1e-05, atol: NotNegative=1e-08, equal_nan: builtins.bool=False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, or equal."""
def isfinite(input: Tensor) -> Tensor:
    """The element is neither infinite nor NaN."""
def isin(elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: builtins.bool=False, invert: builtins.bool=False) -> Tensor:
    """Whether each element is among the others, or with `invert` whether it is not."""
def isinf(input: Tensor) -> Tensor:
    """The element is infinite."""
def isnan(input: Tensor) -> Tensor:
    """The element is not a number."""
def join(input: Tensor, other: Tensor, dim: builtins.int) -> Tensor:
    """Two tensors behind one another along `dim`; `cat` is made of these."""
def kl_div(input: Tensor, target: Tensor, reduction: str='mean', log_target: builtins.bool=False) -> Tensor:
    """Mean of target (log(target) - input), input being logarithms of probabilities."""
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Every element of the input times the whole other tensor, in blocks."""
def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int=-1, keepdim: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """The k-th smallest along `dim`, counted from 1, and its index."""
def l1_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """Mean of |input - target|; the gradient where they are equal is 0."""
@overload
def layer_norm(x: Tensor, normalized_shape: Sizes, weight: Tensor | None=None, bias: Tensor | None=None, eps: builtins.float=1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions of each sample."""
@overload
def layer_norm(x: Tensor, weight: Tensor | None=None, bias: Tensor | None=None, *, normalized_shape: Sizes, eps: builtins.float=1e-05) -> Tensor: ...
@overload
def layer_norm(*, input: Tensor, normalized_shape: Sizes, weight: Tensor | None=None, bias: Tensor | None=None, eps: builtins.float=1e-05) -> Tensor: ...
@overload
def le(input: Tensor, other: Operand) -> Tensor:
    """input <= other."""
@overload
def le(input: Operand, other: Tensor) -> Tensor: ...
@overload
def le_(input: Tensor, other: Operand) -> Tensor:
    """The result of `le`, written over the input."""
@overload
def le_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def leaky_relu(x: Tensor, negative_slope: builtins.float=0.01) -> Tensor:
    """The element where it is positive, otherwise negative_slope times it."""
@overload
def leaky_relu(*, input: Tensor, negative_slope: builtins.float=0.01) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: builtins.float=0.01) -> Tensor:
    """The result of `leaky_relu`, written over the input."""
def lerp(input: Tensor, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
    """Input + weight * (end - input), reckoned from the nearer of the two."""
def lerp_(input: Tensor, end: Tensor, weight: Tensor | builtins.float) -> Tensor:
    """The result of `lerp`, written over the input."""
def lerp_number(input: Tensor, end: Tensor, weight: builtins.float) -> Tensor:
    """Input + weight * (end - input) for a number, reckoned from the nearer of the two."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None=None) -> Tensor:
    """The affine map input @ weight^T + bias, for weight (out, in)."""
def local_response_norm(input: Tensor, size: builtins.int, alpha: builtins.float=0.0001, beta: builtins.float=0.75, k: builtins.float=1.0) -> Tensor:
    """X / (k + alpha mean(x^2 of `size` channels around))^beta (Krizhevsky et al. 2012)."""
@overload
def log(x: Tensor) -> Tensor:
    """Natural logarithm of x."""
@overload
def log(*, input: Tensor) -> Tensor: ...
@overload
def log10(x: Tensor) -> Tensor:
    """Logarithm of x to the base 10."""
@overload
def log10(*, input: Tensor) -> Tensor: ...
def log10_(input: Tensor) -> Tensor:
    """The result of `log10`, written over the input."""
@overload
def log1p(x: Tensor) -> Tensor:
    """log(1 + x), exact for small x too."""
@overload
def log1p(*, input: Tensor) -> Tensor: ...
def log1p_(input: Tensor) -> Tensor:
    """The result of `log1p`, written over the input."""
@overload
def log2(x: Tensor) -> Tensor:
    """Logarithm of x to the base 2."""
@overload
def log2(*, input: Tensor) -> Tensor: ...
def log2_(input: Tensor) -> Tensor:
    """The result of `log2`, written over the input."""
def log_(input: Tensor) -> Tensor:
    """The result of `log`, written over the input."""
@overload
def log_softmax(x: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """Logarithm of softmax, without the underflow of taking one after the other."""
@overload
def log_softmax(*, input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor: ...
@overload
def logical_and(input: Tensor, other: Operand) -> Tensor:
    """Both are not 0."""
@overload
def logical_and(input: Operand, other: Tensor) -> Tensor: ...
@overload
def logical_and_(input: Tensor, other: Operand) -> Tensor:
    """The result of `logical_and`, written over the input."""
@overload
def logical_and_(input: Operand, other: Tensor) -> Tensor: ...
def logical_not(input: Tensor) -> Tensor:
    """The element is 0."""
def logical_not_(input: Tensor) -> Tensor:
    """The result of `logical_not`, written over the input."""
@overload
def logical_or(input: Tensor, other: Operand) -> Tensor:
    """At least one is not 0."""
@overload
def logical_or(input: Operand, other: Tensor) -> Tensor: ...
@overload
def logical_or_(input: Tensor, other: Operand) -> Tensor:
    """The result of `logical_or`, written over the input."""
@overload
def logical_or_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def logical_xor(input: Tensor, other: Operand) -> Tensor:
    """Exactly one is not 0."""
@overload
def logical_xor(input: Operand, other: Tensor) -> Tensor: ...
@overload
def logical_xor_(input: Tensor, other: Operand) -> Tensor:
    """The result of `logical_xor`, written over the input."""
@overload
def logical_xor_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), without underflow on either side."""
@overload
def logsigmoid(*, input: Tensor) -> Tensor: ...
def logspace(start: builtins.float, end: builtins.float, steps: Whole, base: builtins.float=10.0, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """`base` to the power of evenly spaced numbers from start to end, both included."""
def logsumexp(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool=False) -> Tensor:
    """log(sum(exp(x))) over `dim`, with the maximum taken off first."""
def long(input: Tensor) -> Tensor:
    """The tensor as int64."""
@overload
def lstm_steps(x: Tensor, w_hh: Tensor, h0: Tensor | None=None, c0: Tensor | None=None, batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor, Tensor]:
    """At each step c = f c + i g, h = o tanh(c); i, f, o = sigmoid, g = tanh of x + h w_hh."""
@overload
def lstm_steps(*, input: Tensor, w_hh: Tensor, h0: Tensor | None=None, c0: Tensor | None=None, batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lt(input: Tensor, other: Operand) -> Tensor:
    """input < other."""
@overload
def lt(input: Operand, other: Tensor) -> Tensor: ...
@overload
def lt_(input: Tensor, other: Operand) -> Tensor:
    """The result of `lt`, written over the input."""
@overload
def lt_(input: Operand, other: Tensor) -> Tensor: ...
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float=0.0, reduction: str='mean') -> Tensor:
    """max(0, margin - target (input1 - input2)): target 1 wants input1 on top, -1 input2."""
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`value` where the mask is true, otherwise the input."""
def masked_fill_(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """The result of `masked_fill`, written over the input."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The input with the elements of source, in their order, where the mask is true."""
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The result of `masked_scatter`, written over the input."""
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at which the mask is true, in one dimension; both broadcast."""
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product input @ other of the last two dimensions; the others broadcast."""
@overload
def max(x: Tensor) -> Tensor:
    """The largest along `dim`, and its index."""
@overload
def max(x: Tensor, other: Tensor) -> Tensor: ...
@overload
def max(x: Tensor, dim: OneDim, keepdim: builtins.bool=False) -> Extreme: ...
@overload
def max(*, input: Tensor) -> Tensor: ...
@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, return_indices: Literal[False]=False) -> Tensor:
    """The largest number of each window; with return_indices also its index in its channel."""
@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, return_indices: builtins.bool=False) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """The largest number of each window, and its index in its channel; the first of equals."""
@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, return_indices: Literal[False]=False) -> Tensor:
    """The largest number of each window; with return_indices also its index in its channel."""
@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False, return_indices: builtins.bool=False) -> Tensor | tuple[Tensor, Tensor]: ...
def max_pool2d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] | None=None, padding: builtins.int | Sequence[builtins.int]=0, dilation: builtins.int | Sequence[builtins.int]=1, ceil_mode: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """The largest number of each window, and its index in its channel; the first of equals."""
@overload
def maximum(input: Tensor, other: Operand) -> Tensor:
    """The larger of two; NaN wins."""
@overload
def maximum(input: Operand, other: Tensor) -> Tensor: ...
@overload
def mean(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, dtype: DType | None=None) -> Tensor:
    """Sum over `dim`, or over everything, divided by the number of elements; NaN for none."""
@overload
def mean(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, dtype: DType | None=None) -> Tensor: ...
@overload
def median(input: Tensor, dim: None=None, keepdim: builtins.bool=False) -> Tensor:
    """The lower of the two elements in the middle of all; or along `dim`, and its index."""
@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool=False) -> Sorted: ...
@overload
def median(input: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor | Sorted: ...
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: Literal['ij', 'xy']='ij') -> tuple[Tensor, ...]:
    """Each vector expanded over all others' dimensions, as views; 'xy' exchanges the first two."""
@overload
def min(x: Tensor) -> Tensor:
    """The smallest along `dim`, and its index."""
@overload
def min(x: Tensor, other: Tensor) -> Tensor: ...
@overload
def min(x: Tensor, dim: OneDim, keepdim: builtins.bool=False) -> Extreme: ...
@overload
def min(*, input: Tensor) -> Tensor: ...
@overload
def minimum(input: Tensor, other: Operand) -> Tensor:
    """The smaller of two; NaN wins."""
@overload
def minimum(input: Operand, other: Tensor) -> Tensor: ...
@overload
def mish(x: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x))) (Misra 2019)."""
@overload
def mish(*, input: Tensor) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, without broadcasting."""
def moveaxis(input: Tensor, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor:
    """A view with the dims `source` at `destination`, the rest in order."""
def movedim(input: Tensor, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor:
    """A view with the dims `source` at `destination`, the rest in order."""
def mse_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """Mean of (input - target) squared."""
def msort(input: Tensor) -> Tensor:
    """The elements along the first dimension in order."""
@overload
def mul(input: Tensor, other: Operand) -> Tensor:
    """input * other."""
@overload
def mul(input: Operand, other: Tensor) -> Tensor: ...
def mul_(input: Tensor, other: Operand) -> Tensor:
    """The elements of input * other, written over the input."""
def multi_margin_loss(input: Tensor, target: Tensor, p: builtins.int=1, margin: builtins.float=1.0, weight: Tensor | None=None, reduction: str='mean') -> Tensor:
    """Sum of max(0, margin - input[target] + input[i])^p / classes over every i but the target."""
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """Sum of max(0, 1 - input[label] + input[i]) / classes over all labels and other classes i."""
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None=None, reduction: str='mean') -> Tensor:
    """Binary cross-entropy of logits, its mean over the classes in the last dimension."""
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool=False, *, generator: Generator | None=None) -> Tensor:
    """Indices drawn from each row with probabilities in proportion to its weights."""
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
def nan_to_num(input: Tensor, nan: builtins.float | None=None, posinf: builtins.float | None=None, neginf: builtins.float | None=None) -> Tensor:
    """NaN replaced by `nan` (0), and infinities by the largest and the smallest number."""
def nan_to_num_(input: Tensor, nan: builtins.float | None=None, posinf: builtins.float | None=None, neginf: builtins.float | None=None) -> Tensor:
    """The result of `nan_to_num`, written over the input."""
def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, *, dtype: DType | None=None) -> Tensor:
    """The mean over `dim`, or over everything, of what is not NaN."""
@overload
def nanmedian(input: Tensor, dim: None=None, keepdim: builtins.bool=False) -> Tensor:
    """The median of what is not NaN; or along `dim`, and its index."""
@overload
def nanmedian(input: Tensor, dim: builtins.int, keepdim: builtins.bool=False) -> Sorted: ...
@overload
def nanmedian(input: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False) -> Tensor | Sorted: ...
def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, *, dtype: DType | None=None) -> Tensor:
    """The sum over `dim`, or over everything, in which NaN counts as 0."""
def narrow(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """A view of `length` slices along `dim` from `start` on."""
@overload
def ne(input: Tensor, other: Operand) -> Tensor:
    """input != other."""
@overload
def ne(input: Operand, other: Tensor) -> Tensor: ...
@overload
def ne_(input: Tensor, other: Operand) -> Tensor:
    """The result of `ne`, written over the input."""
@overload
def ne_(input: Operand, other: Tensor) -> Tensor: ...
@overload
def neg(x: Tensor) -> Tensor:
    """-x."""
@overload
def neg(*, input: Tensor) -> Tensor: ...
def neg_(input: Tensor) -> Tensor:
    """The result of `neg`, written over the input."""
def new_empty(input: Tensor, *size: Sizes, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """Undefined values, in the type of another tensor."""
def new_full(input: Tensor, size: Sequence[builtins.int], fill_value: Number, *, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """One value everywhere, in the type of another tensor."""
def new_ones(input: Tensor, *size: Sizes, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """1 everywhere, in the type of another tensor."""
def new_tensor(input: Tensor, data: Any, *, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """A new tensor from data, in the type and on the device of another tensor."""
def new_zeros(input: Tensor, *size: Sizes, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """0 everywhere, in the type of another tensor."""
@overload
def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None=None, ignore_index: builtins.int=-100, reduction: str='mean') -> Tensor:
    """Minus x at the target class of each sample; x holds logarithms of probabilities."""
@overload
def nll_loss(*, input: Tensor, target: Tensor, weight: Tensor | None=None, ignore_index: builtins.int=-100, reduction: str='mean') -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False]=False) -> Tensor:
    """Places of the elements that are not 0, one a row; or of each dimension apart."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@overload
def nonzero(input: Tensor, *, as_tuple: builtins.bool=False) -> Tensor | tuple[Tensor, ...]: ...
@overload
def nonzero_places(x: Tensor, count: builtins.int) -> Tensor:
    """Places (count, ndim) of the elements that are not 0, of which there are `count`."""
@overload
def nonzero_places(*, input: Tensor, count: builtins.int) -> Tensor: ...
def norm(input: Tensor, p: builtins.float | str | None='fro', dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, *, dtype: DType | None=None) -> Tensor:
    """(sum of |x|^p)^(1 / p) over `dim`, or of all; "fro" is 2, and 0 counts what is not 0."""
def normal(mean: Tensor | builtins.float=0.0, std: Tensor | builtins.float=1.0, size: Sequence[builtins.int] | None=None, *, generator: Generator | None=None, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """Normally distributed numbers, each with its mean and standard deviation: mean + std * z."""
def normal_(input: Tensor, mean: builtins.float=0.0, std: builtins.float=1.0, *, generator: Generator | None=None) -> Tensor:
    """Overwrite every element with a normally distributed number."""
def normalize(input: Tensor, p: builtins.float=2.0, dim: builtins.int=1, eps: NotNegative=1e-12) -> Tensor:
    """X / max(norm, eps), with the p-norm along `dim`."""
def numpy(tensor: Tensor, *, force: builtins.bool=False) -> Any:
    """A NumPy array over the same memory; with force, of a tensor that asks for a gradient too."""
def one_hot(tensor: Tensor, num_classes: builtins.int=-1) -> Tensor:
    """For each class a row of zeros with a 1 at its place; without a number of classes all seen."""
def ones_like(input: Tensor, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """1 everywhere, in the shape and type of another tensor."""
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Each element of one vector times each of another: y[i, j] = a[i] b[j]."""
@overload
def over_rms(x: Tensor, last: builtins.int, eps: builtins.float) -> Tensor:
    """X / sqrt(mean(x^2) + eps) over the last `last` dimensions."""
@overload
def over_rms(*, input: Tensor, last: builtins.int, eps: builtins.float) -> Tensor: ...
def pad(input: Tensor, pad: Sequence[builtins.int], mode: str='constant', value: Number | None=None) -> Tensor:
    """Borders of so many elements, in front of and behind the last dimension, then the one before."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float=2.0, eps: builtins.float=1e-06, keepdim: builtins.bool=False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
@overload
def permute(x: Tensor, *dims: Sizes) -> Tensor:
    """A view with the dimensions in another order."""
@overload
def permute(x: Tensor, dims: Sequence[builtins.int]) -> Tensor: ...
@overload
def permute(*, input: Tensor, dims: Sequence[builtins.int]) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """(..., C r^2, H, W) as (..., C, H r, W r): r^2 channels become the pixels of one."""
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """(..., C, H r, W r) as (..., C r^2, H, W): the opposite of pixel_shuffle."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool=True, full: builtins.bool=False, eps: builtins.float=1e-08, reduction: str='mean') -> Tensor:
    """exp(input) - target input; input - target log(input + eps) where log_input is false."""
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
@overload
def pow(input: Tensor, other: Operand) -> Tensor:
    """input to the power other."""
@overload
def pow(input: Operand, other: Tensor) -> Tensor: ...
@overload
def pow_(input: Tensor, other: Operand) -> Tensor:
    """The result of `pow`, written over the input."""
@overload
def pow_(input: Operand, other: Tensor) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The element where it is positive, otherwise weight * x; one weight, or one a channel."""
def prod(input: Tensor, dim: builtins.int | None=None, keepdim: builtins.bool=False, dtype: DType | None=None) -> Tensor:
    """Product along `dim`, or of everything; 1 for nothing."""
def rand(*size: Sizes, generator: Generator | None=None, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """Numbers evenly spread over 0 (included) to 1 (not included)."""
@overload
def rand_at(state: Tensor, draws: Tensor, count: builtins.int, dtype: DType=...) -> Tensor:
    """Row i: the first `count` numbers in [0, 1) of draw number draws[i] after `state`."""
@overload
def rand_at(*, input: Tensor, draws: Tensor, count: builtins.int, dtype: DType=...) -> Tensor: ...
def rand_like(input: Tensor, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """`rand` in the shape and type of another tensor."""
def randint(low: builtins.int, high: builtins.int | Sequence[builtins.int], size: Sequence[builtins.int] | None=None, *, generator: Generator | None=None, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """Whole numbers from low to below high; (low, high, size) or (high, size) as in torch."""
def randint_like(input: Tensor, low: builtins.int, high: builtins.int | None=None, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """Whole numbers from low to below high, in the shape and type of another tensor."""
def randn(*size: Sizes, generator: Generator | None=None, dtype: DType | None=None, device: str | None=None, requires_grad: builtins.bool=False) -> Tensor:
    """Normally distributed numbers, mean 0 and variance 1."""
def randn_like(input: Tensor, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """`randn` in the shape and type of another tensor."""
def randperm(n: builtins.int, *, generator: Generator | None=None, device: str | None=None) -> Tensor:
    """The whole numbers 0 to n - 1 in a random order, int64."""
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
@overload
def reciprocal(x: Tensor) -> Tensor:
    """1 / x."""
@overload
def reciprocal(*, input: Tensor) -> Tensor: ...
def reciprocal_(input: Tensor) -> Tensor:
    """The result of `reciprocal`, written over the input."""
@overload
def relu(x: Tensor) -> Tensor:
    """x where it is positive, otherwise 0."""
@overload
def relu(*, input: Tensor) -> Tensor: ...
def relu6(input: Tensor) -> Tensor:
    """The element held between 0 and 6 (Krizhevsky 2010)."""
def relu_(input: Tensor) -> Tensor:
    """The result of `relu`, written over the input."""
def relu_squared(input: Tensor) -> Tensor:
    """The square of relu(x) (So et al. 2021)."""
@overload
def remainder(input: Tensor, other: Operand) -> Tensor:
    """What is left of input when other is taken off floor(input / other) times; other's sign."""
@overload
def remainder(input: Operand, other: Tensor) -> Tensor: ...
@overload
def remainder_(input: Tensor, other: Operand) -> Tensor:
    """The result of `remainder`, written over the input."""
@overload
def remainder_(input: Operand, other: Tensor) -> Tensor: ...
def repeat(input: Tensor, *repeats: Sizes) -> Tensor:
    """The whole input as often as told along each dimension; more numbers add dims in front."""
def repeat_interleave(input: Tensor, repeats: builtins.int | Tensor, dim: builtins.int | None=None, *, output_size: builtins.int | None=None) -> Tensor:
    """Each slice along `dim` so many times in a row; without dim the flat elements."""
def require_finite(input: Tensor) -> Tensor:
    """The tensor itself; raises NumericsError where an element is NaN or infinite."""
@overload
def reshape(x: Tensor, *shape: Sizes) -> Tensor:
    """The same elements in another shape, as a view where possible; one size may be -1."""
@overload
def reshape(x: Tensor, shape: Shape) -> Tensor: ...
@overload
def reshape(*, input: Tensor, shape: Shape) -> Tensor: ...
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
def rms_norm(input: Tensor, normalized_shape: builtins.int | Sequence[builtins.int], weight: Tensor | None=None, eps: NotNegative | None=None) -> Tensor:
    """X / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019)."""
@overload
def rnn_steps(x: Tensor, w_hh: Tensor, h0: Tensor | None=None, nonlinearity: Literal['tanh', 'relu']='tanh', batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor]:
    """At each step h = tanh(x + h w_hh), or relu of it."""
@overload
def rnn_steps(*, input: Tensor, w_hh: Tensor, h0: Tensor | None=None, nonlinearity: Literal['tanh', 'relu']='tanh', batch_first: builtins.bool=False, reverse: builtins.bool=False) -> tuple[Tensor, Tensor]: ...
@overload
def roll(x: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None=None) -> Tensor:
    """Each element moved on by `shifts` along `dims`, from the end to the front; flat without."""
@overload
def roll(*, input: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None=None) -> Tensor: ...
def rot90(input: Tensor, k: builtins.int=1, dims: Sequence[builtins.int]=(0, 1)) -> Tensor:
    """The plane of two dims rotated by 90 degrees k times, from the first towards the second."""
def rotary_embedding(input: Tensor, cos: Tensor, sin: Tensor, *, interleaved: builtins.bool=True) -> Tensor:
    """Pairs (a, b) of each row become (a cos - b sin, a sin + b cos) (Su et al. 2021, RoFormer)."""
@overload
def round(x: Tensor, decimals: builtins.int=0) -> Tensor:
    """The nearest whole number, halves to the even one; or with so many decimals."""
@overload
def round(*, input: Tensor, decimals: builtins.int=0) -> Tensor: ...
def round_(input: Tensor, decimals: builtins.int=0) -> Tensor:
    """The result of `round`, written over the input."""
@overload
def rsqrt(x: Tensor) -> Tensor:
    """1 over the square root of x."""
@overload
def rsqrt(*, input: Tensor) -> Tensor: ...
def rsqrt_(input: Tensor) -> Tensor:
    """The result of `rsqrt`, written over the input."""
def rsub(input: Tensor, other: Operand, *, alpha: builtins.float=1) -> Tensor:
    """The elements of other - alpha * input."""
@overload
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: Portion=0.0, is_causal: builtins.bool=False, scale: builtins.float | None=None, enable_gqa: builtins.bool=False, softcap: builtins.float | None=None) -> Tensor:
    """softmax(scale query key^T + attn_mask) value, for (..., L, E), (..., S, E) and (..., S, F)."""
@overload
def scaled_dot_product_attention(*, input: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: Portion=0.0, is_causal: builtins.bool=False, scale: builtins.float | None=None, enable_gqa: builtins.bool=False, softcap: builtins.float | None=None) -> Tensor: ...
@overload
def scatter(x: Tensor, dim: builtins.int, index: Tensor, src: Operand, *, reduce: str | None=None) -> Tensor:
    """The input with src put at index along `dim`; of several in one place the last stays."""
@overload
def scatter(x: Tensor, dim: builtins.int, index: Tensor, *, value: Number, reduce: str | None=None) -> Tensor: ...
@overload
def scatter(*, input: Tensor, dim: builtins.int, index: Tensor, src: Operand, reduce: str | None=None) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: builtins.int, index: Tensor, src: Operand, *, reduce: str | None=None) -> Tensor:
    """The result of `scatter`, written over the input."""
@overload
def scatter_(input: Tensor, dim: builtins.int, index: Tensor, *, value: Number, reduce: str | None=None) -> Tensor: ...
@overload
def scatter_add(x: Tensor, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
    """The input with src added at index along `dim`, one after another."""
@overload
def scatter_add(x: Tensor, index: Tensor, src: Tensor, dim: builtins.int) -> Tensor: ...
@overload
def scatter_add(*, input: Tensor, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor: ...
@overload
def scatter_add_(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
    """The result of `scatter_add`, written over the input."""
@overload
def scatter_add_(input: Tensor, index: Tensor, src: Tensor, dim: builtins.int) -> Tensor: ...
@overload
def scatter_reduce(x: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, include_self: builtins.bool=True) -> Tensor:
    """The input with src joined with what is at index along `dim`, as `reduce` says."""
@overload
def scatter_reduce(x: Tensor, index: Tensor, src: Tensor, dim: builtins.int, reduce: str, include_self: builtins.bool=True) -> Tensor: ...
@overload
def scatter_reduce(*, input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, include_self: builtins.bool=True) -> Tensor: ...
@overload
def scatter_reduce_(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, include_self: builtins.bool=True) -> Tensor:
    """The result of `scatter_reduce`, written over the input."""
@overload
def scatter_reduce_(input: Tensor, index: Tensor, src: Tensor, dim: builtins.int, reduce: str, include_self: builtins.bool=True) -> Tensor: ...
@overload
def searchsorted(sorted_sequence: Tensor, input: Operand, out_int32: builtins.bool=False, right: builtins.bool=False, side: str | None=None) -> Tensor:
    """Where numbers would be put into sorted rows: before equal ones, or behind (`right`)."""
@overload
def searchsorted(sorted_sequence: Operand, input: Tensor, out_int32: builtins.bool=False, right: builtins.bool=False, side: str | None=None) -> Tensor: ...
def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """A view of one slice along `dim`, without that dimension."""
@overload
def selu(x: Tensor) -> Tensor:
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017)."""
@overload
def selu(*, input: Tensor) -> Tensor: ...
def selu_(input: Tensor) -> Tensor:
    """The result of `selu`, written over the input."""
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator where `get_rng_state` found one; in a captured step, every time."""
def setitem(input: Tensor, index: Any, value: Any) -> None:
    """Replace part of a tensor; the value is cast and broadcast. The last of several stays."""
@overload
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), without overflow on either side."""
@overload
def sigmoid(*, input: Tensor) -> Tensor: ...
def sigmoid_(input: Tensor) -> Tensor:
    """The result of `sigmoid`, written over the input."""
@overload
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1."""
@overload
def sign(*, input: Tensor) -> Tensor: ...
def sign_(input: Tensor) -> Tensor:
    """The result of `sign`, written over the input."""
@overload
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), also known as swish (Elfwing et al. 2017)."""
@overload
def silu(*, input: Tensor) -> Tensor: ...
@overload
def sin(x: Tensor) -> Tensor:
    """Sine of x, in radians."""
@overload
def sin(*, input: Tensor) -> Tensor: ...
def sin_(input: Tensor) -> Tensor:
    """The result of `sin`, written over the input."""
@overload
def sinh(x: Tensor) -> Tensor:
    """Hyperbolic sine of x."""
@overload
def sinh(*, input: Tensor) -> Tensor: ...
def sinh_(input: Tensor) -> Tensor:
    """The result of `sinh`, written over the input."""
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str='mean', beta: builtins.float=1.0) -> Tensor:
    """Mean of d^2 / (2 beta) where d = |input - target| is below beta, otherwise d - beta / 2."""
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str='mean') -> Tensor:
    """log(1 + exp(-target input)), the target being 1 or -1; large inputs do not overflow."""
def softcap(input: Tensor, cap: builtins.float) -> Tensor:
    """The element held softly between -cap and cap: cap * tanh(x / cap) (Gemma 2, 2024)."""
@overload
def softmax(x: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, with the maximum taken off first; NaN where all is -inf."""
@overload
def softmax(*, input: Tensor, dim: builtins.int, dtype: DType | None=None) -> Tensor: ...
def softmin(input: Tensor, dim: builtins.int, dtype: dtypes.DType | None=None) -> Tensor:
    """exp(-x) / the sum of exp(-x) along `dim`."""
@overload
def softplus(x: Tensor, beta: builtins.float=1.0, threshold: builtins.float=20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; the element itself where beta * x is above the threshold."""
@overload
def softplus(*, input: Tensor, beta: builtins.float=1.0, threshold: builtins.float=20.0) -> Tensor: ...
@overload
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|): like tanh, but slower to arrive."""
@overload
def softsign(*, input: Tensor) -> Tensor: ...
@overload
def sort(x: Tensor, dim: builtins.int=-1, descending: builtins.bool=False, stable: builtins.bool=True) -> Sorted:
    """The elements along `dim` in order, and their indices; stable, and a NaN is the largest."""
@overload
def sort(*, input: Tensor, dim: builtins.int=-1, descending: builtins.bool=False, stable: builtins.bool=True) -> Sorted: ...
@overload
def split(x: Tensor, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int=0) -> tuple[Tensor, ...]:
    """Views of parts along `dim`: all of one size but the last, or each of its own."""
@overload
def split(*, input: Tensor, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int=0) -> tuple[Tensor, ...]: ...
@overload
def sqrt(x: Tensor) -> Tensor:
    """Square root of x."""
@overload
def sqrt(*, input: Tensor) -> Tensor: ...
def sqrt_(input: Tensor) -> Tensor:
    """The result of `sqrt`, written over the input."""
def square(input: Tensor) -> Tensor:
    """The element times itself; of truths 0 or 1, as int64."""
def square_(input: Tensor) -> Tensor:
    """The result of `square`, written over the input."""
def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None) -> Tensor:
    """Without its dimensions of size 1, or without those named."""
def stack(tensors: Sequence[Tensor], dim: builtins.int=0) -> Tensor:
    """Tensors of one shape, side by side along a new dimension."""
@overload
def std(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, correction: builtins.float | None=1) -> Tensor:
    """Square root of var."""
@overload
def std(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, correction: builtins.float | None=1) -> Tensor: ...
def std_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, *, correction: builtins.float | None=1) -> tuple[Tensor, Tensor]:
    """The standard deviation, as std gives it, and the mean, over `dim` or over everything."""
@overload
def sub(input: Tensor, other: Operand, alpha: builtins.float=1) -> Tensor:
    """input - other, which is multiplied by alpha first."""
@overload
def sub(input: Operand, other: Tensor, alpha: builtins.float=1) -> Tensor: ...
def sub_(input: Tensor, other: Operand, *, alpha: builtins.float=1) -> Tensor:
    """The elements of input - alpha * other, written over the input."""
@overload
def sum(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, dtype: DType | None=None) -> Tensor:
    """Sum of x over `dim`, or over everything; 0 for nothing."""
@overload
def sum(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False, dtype: DType | None=None) -> Tensor: ...
def swapaxes(input: Tensor, axis0: builtins.int, axis1: builtins.int) -> Tensor:
    """A view with two dimensions exchanged."""
def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """A view with two dimensions exchanged."""
def swiglu(input: Tensor, dim: builtins.int=-1) -> Tensor:
    """The silu of the first half along `dim` times the second (Shazeer 2020)."""
def t(input: Tensor) -> Tensor:
    """A matrix transposed; vectors and numbers as they are."""
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat input, in the index's shape; negative indices count from the end."""
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None=None) -> Tensor:
    """Gather, with input and indices broadcast against each other outside `dim`; flat without."""
@overload
def tan(x: Tensor) -> Tensor:
    """Tangent of x, in radians."""
@overload
def tan(*, input: Tensor) -> Tensor: ...
def tan_(input: Tensor) -> Tensor:
    """The result of `tan`, written over the input."""
@overload
def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent of x."""
@overload
def tanh(*, input: Tensor) -> Tensor: ...
def tanh_(input: Tensor) -> Tensor:
    """The result of `tanh`, written over the input."""
def tanhshrink(input: Tensor) -> Tensor:
    """The element minus its tanh: x - tanh(x)."""
def tensor_split(input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int=0) -> tuple[Tensor, ...]:
    """Views along `dim`: this many, the first ones longer by one; or cut before these indices."""
def tensordot(a: Tensor, b: Tensor, dims: builtins.int | Sequence[builtins.int | Sequence[builtins.int]]=2) -> Tensor:
    """Sums of products over dims of a and of b: lists of both, or how many of a's last, b's first."""
@overload
def threshold(x: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """The element where it is above the threshold, otherwise the value."""
@overload
def threshold(*, input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor: ...
def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """The result of `threshold`, written over the input."""
def tile(input: Tensor, *dims: Sizes) -> Tensor:
    """The whole input as often as told along the last dimensions."""
def to(input: Tensor, dtype: DType | Tensor | str) -> Tensor:
    """The tensor as another element type; itself where it has that type already."""
@overload
def topk(x: Tensor, k: builtins.int, dim: builtins.int=-1, largest: builtins.bool=True, sorted: builtins.bool=True) -> Sorted:
    """The k largest (smallest) along `dim` in order, and their indices; of equal ones the first."""
@overload
def topk(*, input: Tensor, k: builtins.int, dim: builtins.int=-1, largest: builtins.bool=True, sorted: builtins.bool=True) -> Sorted: ...
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
@overload
def transfer(x: Tensor, device: str) -> Tensor:
    """The same elements on another device ("cpu", "cuda", "cuda:1", "metal", "meta")."""
@overload
def transfer(*, input: Tensor, device: str) -> Tensor: ...
def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """A view with two dimensions exchanged."""
@overload
def tril(x: Tensor, diagonal: builtins.int=0) -> Tensor:
    """The elements on and below a diagonal (counted from the main one, upwards), 0 above it."""
@overload
def tril(*, input: Tensor, diagonal: builtins.int=0) -> Tensor: ...
def tril_(input: Tensor, diagonal: builtins.int=0) -> Tensor:
    """The result of `tril`, written over the input."""
def tril_indices(row: Whole, col: Whole, offset: builtins.int=0, *, device: str | None=None) -> Tensor:
    """The indices of a lower triangle of (row, col), row by row: int64 (2, count)."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: builtins.float=1.0, p: builtins.float=2.0, eps: builtins.float=1e-06, swap: builtins.bool=False, reduction: str='mean') -> Tensor:
    """max(0, margin + distance to positive - distance to negative) (Schroff et al. 2015)."""
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None=None, margin: builtins.float=1.0, swap: builtins.bool=False, reduction: str='mean') -> Tensor:
    """triplet_margin_loss with any distance function, such as 1 - cosine_similarity."""
@overload
def triu(x: Tensor, diagonal: builtins.int=0) -> Tensor:
    """The elements on and above a diagonal (counted from the main one, upwards), 0 below it."""
@overload
def triu(*, input: Tensor, diagonal: builtins.int=0) -> Tensor: ...
def triu_(input: Tensor, diagonal: builtins.int=0) -> Tensor:
    """The result of `triu`, written over the input."""
def triu_indices(row: Whole, col: Whole, offset: builtins.int=0, *, device: str | None=None) -> Tensor:
    """The indices of an upper triangle of (row, col), row by row: int64 (2, count)."""
def true_divide(input: Tensor, other: Operand) -> Tensor:
    """The same as div without a rounding mode."""
def true_divide_(input: Tensor, other: Operand) -> Tensor:
    """The result of `true_divide`, written over the input."""
@overload
def trunc(x: Tensor) -> Tensor:
    """The whole number next to x towards 0."""
@overload
def trunc(*, input: Tensor) -> Tensor: ...
def trunc_(input: Tensor) -> Tensor:
    """The result of `trunc`, written over the input."""
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the type of another tensor: input.to(other.dtype)."""
def unbind(input: Tensor, dim: builtins.int=0) -> tuple[Tensor, ...]:
    """The slices along `dim`, each without that dimension, as views."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    """One dimension cut into several of these sizes, of which one may be -1."""
@overload
def unfold(x: Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """A view of all windows of `size` along a dimension, `step` apart; a window is the last dim."""
@overload
def unfold(*, input: Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor: ...
def uniform_(input: Tensor, low: builtins.float=0.0, high: builtins.float=1.0, *, generator: Generator | None=None) -> Tensor:
    """Overwrite every element with a number evenly spread over low to high."""
@overload
def unique(input: Tensor, sorted: builtins.bool=True, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: builtins.int | None=None) -> Tensor:
    """The different elements, or slices along `dim`, in ascending order."""
@overload
def unique(input: Tensor, sorted: builtins.bool=True, *, return_inverse: Literal[True], return_counts: builtins.bool=False, dim: builtins.int | None=None) -> tuple[Tensor, ...]: ...
@overload
def unique(input: Tensor, sorted: builtins.bool=True, return_inverse: builtins.bool=False, *, return_counts: Literal[True], dim: builtins.int | None=None) -> tuple[Tensor, ...]: ...
@overload
def unique(input: Tensor, sorted: builtins.bool=True, return_inverse: builtins.bool=False, return_counts: builtins.bool=False, dim: builtins.int | None=None) -> Tensor | tuple[Tensor, ...]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: builtins.int | None=None) -> Tensor:
    """The elements, or slices along `dim`, without those equal to the one before."""
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[True], return_counts: builtins.bool=False, dim: builtins.int | None=None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: builtins.bool=False, *, return_counts: Literal[True], dim: builtins.int | None=None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: builtins.bool=False, return_counts: builtins.bool=False, dim: builtins.int | None=None) -> Tensor | tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    """With one more dimension, of size 1, at `dim`."""
@overload
def var(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, correction: builtins.float | None=1) -> Tensor:
    """Sum of (x - mean) squared over n - correction, in two passes; NaN where that is 0 / 0."""
@overload
def var(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, correction: builtins.float | None=1) -> Tensor: ...
def var_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, unbiased: builtins.bool | None=None, keepdim: builtins.bool=False, *, correction: builtins.float | None=1) -> tuple[Tensor, Tensor]:
    """The variance, as var gives it, and the mean, over `dim` or over everything."""
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors; for real numbers the same as dot."""
@overload
def vector_norm(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False) -> Tensor:
    """The root of the sum of the squares over `dim`, or over everything."""
@overload
def vector_norm(*, input: Tensor, dim: builtins.int | Sequence[builtins.int] | None=None, keepdim: builtins.bool=False) -> Tensor: ...
def view(input: Tensor, *shape: Sizes) -> Tensor:
    """The same memory in another shape; an error where that needs a copy."""
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors below one another; a vector is a row."""
@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """`input` where the condition is true, otherwise `other`; all three broadcast."""
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def with_part(x: Tensor, value: Tensor, index: Any) -> Tensor:
    """A copy of x with one part replaced: whole numbers, slices, None and Ellipsis."""
@overload
def with_part(*, input: Tensor, value: Tensor, index: Any) -> Tensor: ...
def zero_(input: Tensor) -> Tensor:
    """Overwrite every element with 0."""
def zeros_like(input: Tensor, *, dtype: DType | None=None, device: str | None=None) -> Tensor:
    """0 everywhere, in the shape and type of another tensor."""
__all__ = ['abs', 'abs_', 'acos', 'acos_', 'adaptive_avg_pool1d', 'adaptive_avg_pool2d', 'adaptive_max_pool1d', 'adaptive_max_pool1d_with_indices', 'adaptive_max_pool2d', 'adaptive_max_pool2d_with_indices', 'add', 'add_', 'addcdiv', 'addcdiv_', 'addcmul', 'addcmul_', 'addmm', 'addmm_', 'affine', 'all', 'allclose', 'alpha_dropout', 'amax', 'amin', 'aminmax', 'any', 'arange', 'argmax', 'argmin', 'argsort', 'argwhere', 'asin', 'asin_', 'atan', 'atan2', 'atan2_', 'atan_', 'atleast_1d', 'atleast_2d', 'atleast_3d', 'avg_pool1d', 'avg_pool2d', 'backward', 'baddbmm', 'baddbmm_', 'batch_norm', 'bernoulli', 'bernoulli_', 'bilinear', 'binary_cross_entropy', 'binary_cross_entropy_with_logits', 'bincount', 'bitwise_and', 'bitwise_and_', 'bitwise_not', 'bitwise_not_', 'bitwise_or', 'bitwise_or_', 'bitwise_xor', 'bitwise_xor_', 'bmm', 'broadcast_tensors', 'broadcast_to', 'bucketize', 'cast', 'cat', 'ceil', 'ceil_', 'celu', 'celu_', 'chunk', 'clamp', 'clamp_', 'clamp_max', 'clamp_max_', 'clamp_min', 'clamp_min_', 'clip', 'clip_', 'clone', 'col2im', 'column_stack', 'concat', 'constant_pad_nd', 'contiguous', 'conv1d', 'conv2d', 'conv_transpose1d', 'conv_transpose2d', 'cos', 'cos_', 'cosh', 'cosh_', 'cosine_embedding_loss', 'cosine_similarity', 'count_nonzero', 'cross', 'cross_entropy', 'cummax', 'cummin', 'cumprod', 'cumprod_', 'cumsum', 'cumsum_', 'diag', 'diag_embed', 'diagonal', 'diff', 'div', 'div_', 'dot', 'dropout', 'dropout1d', 'dropout2d', 'dstack', 'einsum', 'elu', 'elu_', 'embedding', 'empty_like', 'eq', 'eq_', 'equal', 'erf', 'erf_', 'erfc', 'erfc_', 'exp', 'exp2', 'exp2_', 'exp_', 'expand', 'expand_as', 'expm1', 'expm1_', 'eye', 'fill_', 'flat_index', 'flatten', 'flip', 'fliplr', 'flipud', 'floor', 'floor_', 'floor_divide', 'floor_divide_', 'fmod', 'fmod_', 'format', 'frac', 'frac_', 'full_like', 'gather', 'gaussian_nll_loss', 'ge', 'ge_', 'gelu', 'get_rng_state', 'getitem', 'getitem_by_tensor', 'glu', 'group_norm', 'gru_steps', 'gt', 'gt_', 'hardsigmoid', 'hardswish', 'hardtanh', 'hardtanh_', 'hinge_embedding_loss', 'hstack', 'huber_loss', 'hypot', 'hypot_', 'im2col', 'index_add', 'index_add_', 'index_copy', 'index_copy_', 'index_fill', 'index_fill_', 'index_put', 'index_put_', 'index_select', 'inner', 'instance_norm', 'interpolate', 'isclose', 'isfinite', 'isin', 'isinf', 'isnan', 'join', 'kl_div', 'kron', 'kthvalue', 'l1_loss', 'layer_norm', 'le', 'le_', 'leaky_relu', 'leaky_relu_', 'lerp', 'lerp_', 'lerp_number', 'linear', 'local_response_norm', 'log', 'log10', 'log10_', 'log1p', 'log1p_', 'log2', 'log2_', 'log_', 'log_softmax', 'logical_and', 'logical_and_', 'logical_not', 'logical_not_', 'logical_or', 'logical_or_', 'logical_xor', 'logical_xor_', 'logsigmoid', 'logspace', 'logsumexp', 'lstm_steps', 'lt', 'lt_', 'margin_ranking_loss', 'masked_fill', 'masked_fill_', 'masked_scatter', 'masked_scatter_', 'masked_select', 'matmul', 'max', 'max_pool1d', 'max_pool1d_with_indices', 'max_pool2d', 'max_pool2d_with_indices', 'maximum', 'mean', 'median', 'meshgrid', 'min', 'minimum', 'mish', 'mm', 'moveaxis', 'movedim', 'mse_loss', 'msort', 'mul', 'mul_', 'multi_margin_loss', 'multilabel_margin_loss', 'multilabel_soft_margin_loss', 'multinomial', 'mv', 'nan_to_num', 'nan_to_num_', 'nanmean', 'nanmedian', 'nansum', 'narrow', 'ne', 'ne_', 'neg', 'neg_', 'new_empty', 'new_full', 'new_ones', 'new_tensor', 'new_zeros', 'nll_loss', 'nonzero', 'nonzero_places', 'norm', 'normal', 'normal_', 'normalize', 'numpy', 'one_hot', 'ones_like', 'outer', 'over_rms', 'pad', 'pairwise_distance', 'permute', 'pixel_shuffle', 'pixel_unshuffle', 'poisson_nll_loss', 'positive', 'pow', 'pow_', 'prelu', 'prod', 'rand', 'rand_at', 'rand_like', 'randint', 'randint_like', 'randn', 'randn_like', 'randperm', 'ravel', 'reciprocal', 'reciprocal_', 'relu', 'relu6', 'relu_', 'relu_squared', 'remainder', 'remainder_', 'repeat', 'repeat_interleave', 'require_finite', 'reshape', 'reshape_as', 'rms_norm', 'rnn_steps', 'roll', 'rot90', 'rotary_embedding', 'round', 'round_', 'rsqrt', 'rsqrt_', 'rsub', 'scaled_dot_product_attention', 'scatter', 'scatter_', 'scatter_add', 'scatter_add_', 'scatter_reduce', 'scatter_reduce_', 'searchsorted', 'select', 'selu', 'selu_', 'set_rng_state', 'setitem', 'sigmoid', 'sigmoid_', 'sign', 'sign_', 'silu', 'sin', 'sin_', 'sinh', 'sinh_', 'smooth_l1_loss', 'soft_margin_loss', 'softcap', 'softmax', 'softmin', 'softplus', 'softsign', 'sort', 'split', 'sqrt', 'sqrt_', 'square', 'square_', 'squeeze', 'stack', 'std', 'std_mean', 'sub', 'sub_', 'sum', 'swapaxes', 'swapdims', 'swiglu', 't', 'take', 'take_along_dim', 'tan', 'tan_', 'tanh', 'tanh_', 'tanhshrink', 'tensor_split', 'tensordot', 'threshold', 'threshold_', 'tile', 'to', 'topk', 'trace', 'transfer', 'transpose', 'tril', 'tril_', 'tril_indices', 'triplet_margin_loss', 'triplet_margin_with_distance_loss', 'triu', 'triu_', 'triu_indices', 'true_divide', 'true_divide_', 'trunc', 'trunc_', 'type_as', 'unbind', 'unflatten', 'unfold', 'uniform_', 'unique', 'unique_consecutive', 'unsqueeze', 'var', 'var_mean', 'vdot', 'vector_norm', 'view', 'view_as', 'vstack', 'where', 'with_part', 'zero_', 'zeros_like']
