"""Tensor: an Array with a history. Every operation is a look-up in the table of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from gradcli.engine import graph, hooks, recording, table
from gradcli.engine.array import Array, copy_into
from gradcli.engine.dtype import DType
from gradcli.engine.graph import Edge, Leaf, Node
from gradcli.engine.hooks import RemovableHandle
from gradcli.engine.shape import Shape, dim_index
from gradcli.errors import AutogradError, DTypeError, OptionError, OptionTypeError, ShapeError


class Tensor:
    """Numbers in a grid, and, where wanted, the memory of how they were computed.

    Operators and most methods are the ops of the same name (`x.relu()` is `engine.relu(x)`);
    names, arguments and results are torch's.
    """

    __slots__ = ("alias", "array", "leaf", "node", "output")
    __hash__ = object.__hash__  # `==` compares elements; identity is what sets and dicts need

    def __init__(
        self,
        array: Array,
        *,
        requires_grad: bool = False,
        node: Node | None = None,
        output: int = 0,
        alias: bool = False,
    ) -> None:
        if not isinstance(array, Array):
            raise DTypeError("Tensor: made by engine.tensor(data), not by calling the class")
        self.array = array
        self.node = node
        self.output = output
        self.leaf: Leaf | None = None
        self.alias = alias  # True where the memory came from another tensor: views, detach()
        if requires_grad is not False:
            self.requires_grad_(requires_grad)

    # -- facts ---------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Sizes of the dimensions."""
        return self.array.shape

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.array.dtype

    @property
    def device(self) -> str:
        """Where the numbers lie: "cpu", "cuda" (the second GPU is "cuda:1"), "metal" or "meta"."""
        device = self.array.storage.device
        return "cpu" if device is None else str(device.name)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.array.shape)

    def dim(self) -> int:
        """Number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Number of elements."""
        return self.array.numel

    @overload
    def size(self, dim: None = None) -> Shape: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Shape | int:
        """The shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim_index(dim, self.ndim, "size")]

    @overload
    def stride(self, dim: None = None) -> Shape: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> Shape | int:
        """Steps between neighbours along each dimension, or along one, in elements."""
        strides = self.array.strides
        return strides if dim is None else strides[dim_index(dim, self.ndim, "stride")]

    def is_contiguous(self) -> bool:
        """True when the elements lie in row-major order without gaps."""
        return self.array.is_contiguous()

    def is_floating_point(self) -> bool:
        """True for float32, float64 and bfloat16."""
        return self.dtype.is_floating_point

    @property
    def T(self) -> Tensor:  # noqa: N802 -- torch's name
        """A matrix transposed; vectors and numbers as they are."""
        return table.t(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802 -- torch's name
        """The last two dimensions exchanged."""
        return table.transpose(self, -2, -1)

    def cpu(self) -> Tensor:
        """The numbers on the CPU; the tensor itself if they lie there."""
        return table.to(self, "cpu")

    def cuda(self) -> Tensor:
        """The numbers on the first GPU; the tensor itself if they lie there."""
        return table.to(self, "cuda")

    # -- gradients -----------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """True when backward will pass through or end here."""
        return self.node is not None or self.leaf is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """True for tensors that the user made, not an op."""
        return self.node is None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for a gradient (or no longer); returns the tensor itself."""
        if not isinstance(requires_grad, bool):
            sentence = f"must be True or False, got {requires_grad!r:.60}"
            raise OptionTypeError(f"requires_grad_: requires_grad {sentence}")
        if requires_grad and not self.dtype.is_floating_point:
            raise AutogradError(f"only float tensors can have gradients, this one is {self.dtype}")
        if self.node is not None:
            if not requires_grad:
                raise AutogradError("requires_grad: only leaves can be switched off; use detach()")
            return self
        if requires_grad != (self.leaf is not None):
            self.leaf = Leaf() if requires_grad else None
            recording.invalidate()
        return self

    def retain_grad(self) -> None:
        """Have `grad` here too, though an op made this tensor; it is what the hooks leave."""
        hooks.asks_for_gradient("retain_grad", self.requires_grad)
        if self.node is not None and self.leaf is None:
            self.leaf = Leaf()
            keep = hooks.Hook(self.output, lambda grad: grad, self.leaf)
            hooks.enter(self.node, "hooks", keep)

    @property
    def retains_grad(self) -> bool:
        """True where an op made the tensor and retain_grad() was called."""
        return self.node is not None and self.leaf is not None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` when the gradient of this tensor is known; what it gives is taken on.

        A captured step runs it while it is recorded only.
        """
        hooks.asks_for_gradient("register_hook", self.requires_grad)
        function = hooks.check_hook("register_hook", hook)
        wrapped = hooks.of_tensors(function, Tensor, self.shape, self.dtype)
        return hooks.enter(self.node or self.leaf, "hooks", hooks.Hook(self.output, wrapped))

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` each time that a gradient has been added to this leaf's `grad`."""
        hooks.asks_for_gradient("register_post_accumulate_grad_hook", self.requires_grad)
        function = hooks.check_hook("register_post_accumulate_grad_hook", hook)
        if self.node is not None:
            raise AutogradError(
                "register_post_accumulate_grad_hook: takes leaves; use register_hook here"
            )
        return hooks.enter(self.leaf, "after", lambda: function(self))

    @property
    def grad(self) -> Tensor | None:
        """What backward has added up here so far."""
        if self.leaf is None or self.leaf.grad is None:
            return None
        array, before = self.leaf.grad, self.leaf.history
        result = Tensor(array, alias=True)
        if before is not None and before[0] is array:  # it can be differentiated itself
            origin, result.output = before[1:]
            result.node = origin if isinstance(origin, Node) else None
            result.leaf = origin if isinstance(origin, Leaf) else None
        return result

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            if self.leaf is not None:
                self.leaf.grad = None
            return
        if not isinstance(value, Tensor):
            raise DTypeError(f"grad: takes a Tensor or None, got {type(value).__name__}")
        if self.leaf is None:
            raise AutogradError("grad: this tensor does not ask for a gradient")
        if value.shape != self.shape or value.dtype is not self.dtype:
            raise ShapeError(
                f"grad: {self.dtype} {self.shape} wanted, got {value.dtype} {value.shape}"
            )
        self.leaf.grad = value.array

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        """Add d self / d leaf, times `gradient`, to the grad of every leaf this depends on.

        With create_graph gradients have a history and can be differentiated again; with `inputs`
        only the leaves named there get one.
        """
        table.backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same memory without history."""
        result = Tensor(self.array)
        result.alias = True
        return result

    @property
    def data(self) -> Tensor:
        """The same memory without history; can be replaced by a tensor of its shape and type."""
        result = Tensor(self.array)
        result.alias = True
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise DTypeError(f"data: takes a Tensor, got {type(value).__name__}")
        if value.shape != self.shape or value.dtype is not self.dtype:
            raise ShapeError(
                f"data: {self.dtype} {self.shape} wanted, got {value.dtype} {value.shape}"
            )
        self.array, self.alias = value.array, True
        recording.invalidate()

    def __copy__(self) -> Tensor:
        result = object.__new__(type(self))
        Tensor.__init__(result, self.array, node=self.node, output=self.output, alias=True)
        result.leaf = self.leaf
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.node is not None:
            raise AutogradError("deepcopy: this tensor has a history; use detach() first")
        result = object.__new__(type(self))
        Tensor.__init__(result, self.array.copy(), requires_grad=self.requires_grad)
        if result.leaf is not None and self.leaf is not None and self.leaf.grad is not None:
            result.leaf.grad = self.leaf.grad.copy()
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: object) -> Any:
        raise OptionError(
            "pickle: tensors are not pickled, because loading a pickle runs code; "
            "save state_dict() as safetensors, or send tolist() or memoryview()"
        )

    # -- values out and in ---------------------------------------------------------------------

    def item(self) -> Any:
        """The one element as a Python number."""
        if self.numel() != 1:
            raise ShapeError(f"item: needs exactly one element, got shape {self.shape}")
        return self.array.reshape(()).tolist()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.array.tolist()

    def memoryview(self) -> memoryview:
        """The bytes of a contiguous tensor, shared."""
        return self.array.memoryview()

    def copy_(self, source: Tensor) -> Tensor:
        """Overwrite the elements with those of `source`, cast and broadcast."""
        if not isinstance(source, Tensor):
            raise DTypeError(f"copy_: source must be a Tensor, got {type(source).__name__}")
        refuse_recorded("copy_", self, source)
        copy_into(self.array, source.array)
        return self

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise OptionError(f"the truth of a tensor of shape {self.shape} is not one answer")
        return bool(self.item())

    def __index__(self) -> int:
        if self.dtype.kind == "float":
            raise OptionError(f"a {self.dtype} tensor cannot be an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise OptionError("a tensor without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        len(self)  # refuses a number
        return iter(table.unbind(self, 0))

    def __contains__(self, element: Any) -> bool:
        return bool(table.eq(self, element).sum().item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else format(str(self), spec)

    def __repr__(self) -> str:
        return str(table.format(self))

    # -- operators; the others stand in ops/operators.py -------------------------------------------

    def __getitem__(self, index: object) -> Tensor:
        parts = index if isinstance(index, tuple) else (index,)
        if any(map(_picks, parts)):
            return table.getitem_by_tensor(self, index)
        return table.getitem(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        table.setitem(self, index, value)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return table.eq(self, other) if isinstance(other, _COMPARABLE) else NotImplemented

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return table.ne(self, other) if isinstance(other, _COMPARABLE) else NotImplemented

    if TYPE_CHECKING:
        # Ops are installed as methods from the table; tensor.pyi lists them one by one.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...


def _picks(part: object) -> bool:
    """True for parts of an index that pick elements, instead of showing a view."""
    if isinstance(part, Tensor):
        return part.ndim > 0 or part.dtype.kind == "bool"
    return isinstance(part, (list, tuple, range, bool))


# With anything else == is Python's: the same object or not.
_COMPARABLE: tuple[type[Any], ...] = (Tensor, Number)


def refuse_recorded(name: str, *tensors: object) -> None:
    """Refuse to write in place where a gradient would be lost; torch would record it."""
    if graph.grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in tensors):
        raise AutogradError(
            f"{name}: no gradient passes through writing in place; do it under engine.no_grad(), "
            "or make a new tensor, as in x = x + y"
        )


def install(name: str, function: Callable[..., object]) -> None:
    """Make an op a method of Tensor: `x.name(...)` is `function(x, ...)`."""
    if isinstance(function, FunctionType):  # Python binds x to it by itself
        setattr(Tensor, name, function)
        return

    def method(self: Tensor, *args: object, **options: object) -> Any:
        return function(self, *args, **options)

    method.__name__ = name
    method.__doc__ = function.__doc__
    setattr(Tensor, name, method)


def parents_of(tensors: Sequence[Tensor | None]) -> list[Edge | None]:
    """Where the gradients of these inputs go; None where none is wanted."""
    edges: list[Edge | None] = []
    for t in tensors:
        origin = None if t is None else t.node or t.leaf
        edges.append(None if origin is None or t is None else (origin, t.output))
    return edges
