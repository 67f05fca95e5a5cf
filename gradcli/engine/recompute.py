"""checkpoint: a part of the graph saves nothing, and computes again what its gradients need.

After the part has run, each of its nodes drops what it saved. When the backward pass comes to the
first of them, the part runs once more with the same random numbers, and the nodes of the first run
take over what those of the second run save, one by one. Edges and hooks stay as they are: so
gradients are the same bits, `grad()` reaches into the part and gradients of gradients go on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from gradcli.engine import graph
from gradcli.engine.autocast import autocast, autocasting
from gradcli.engine.device.cpu import Storage
from gradcli.engine.fused import decomposed, decomposing
from gradcli.engine.graph import Later, Leaf, Node, Versions
from gradcli.engine.kind import Count, Kind
from gradcli.engine.random import default_generator
from gradcli.engine.tensor import Tensor
from gradcli.errors import AutogradError, OptionError

_repeating: ContextVar[object] = ContextVar("repeating", default=None)
# What stands for a part's second run while it lasts, else None: what counts each run, such as
# statistics, stays as it is then.
repeating: Callable[[], object] = _repeating.get


def checkpoint(
    function: Callable[..., object],
    *args: object,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: object,
) -> Any:
    """`function(*args, **kwargs)`, of which only the arguments are saved for backward.

    It runs once more in the backward pass, and must do the same then: dropout draws the same
    numbers (unless preserve_rng_state is off), and a changed argument or parameter is refused.
    """
    truth = Kind.of(bool)
    truth.convert_argument("checkpoint", "preserve_rng_state", preserve_rng_state)
    if truth.convert_argument("checkpoint", "use_reentrant", use_reentrant):
        raise OptionError("checkpoint: use_reentrant must be False; there is one kind")
    Kind.of(Callable).convert_argument("checkpoint", "function", function)
    if not graph.grad_enabled():
        return function(*args, **kwargs)
    since = graph.now()
    part = _Part(lambda: function(*args, **kwargs), preserve_rng_state)
    result = part.run()
    part.give_up(_nodes(result, since))
    return result


def checkpoint_sequential(
    functions: Iterable[Callable[[Any], Any]], segments: Count, input: object
) -> Any:
    """The functions (or layers) in a row, in segments: each but the last is a checkpoint."""
    name = "checkpoint_sequential"
    segments = Kind.of(Count).convert_argument(name, "segments", segments)
    steps = list(Kind.of(Iterable).convert_argument(name, "functions", functions))
    for i, step in enumerate(steps):
        Kind.of(Callable).convert_argument(name, f"functions[{i}]", step)
    size = max(1, len(steps) // segments)
    cuts = [min(i * size, len(steps)) for i in range(min(segments, len(steps) + 1))]
    for first, last in pairwise(cuts):
        input = checkpoint(_Chain(steps[first:last]), input)
    return _Chain(steps[cuts[-1] :])(input)


class _Chain:
    """Functions one after the other."""

    def __init__(self, steps: list[Callable[[Any], Any]]) -> None:
        self._steps = steps

    def __call__(self, value: Any) -> Any:
        """What the last one gives."""
        for step in self._steps:
            value = step(value)
        return value


class _Part:
    """A function that can run again as it ran before, and what its nodes saved the second time."""

    def __init__(self, function: Callable[[], object], preserve: bool) -> None:
        self._function = function
        self._random = default_generator.get_state() if preserve else None
        self._decomposed = decomposing()
        self._autocast = autocasting()
        self._names: list[str] = []
        self._watched: list[tuple[str, weakref.ref[Storage], int]] = []
        self._saved: list[tuple[Any, Versions] | None] = []

    def run(self) -> Any:
        """The function, remembered."""
        with graph.enable_grad(), decomposed(self._decomposed), autocast(enabled=self._autocast):
            return self._function()

    def give_up(self, nodes: list[Node]) -> None:
        """Drop what the nodes saved; watch for changes of the memory that outlives them."""
        for index, node in enumerate(nodes):
            self._names.append(node.name)
            for storage, version in node.versions:
                self._watched.append((node.name, weakref.ref(storage), version))
            node.saved, node.versions = _Recomputed(self, index), []

    def take(self, index: int) -> tuple[Any, Versions]:
        """What one node saved; runs the function again if it has not been run again yet."""
        if not self._saved:
            self._saved = [*self._rerun()]
        saved, self._saved[index] = self._saved[index], None
        assert saved is not None, "a node takes what it saves once"
        return saved

    def _rerun(self) -> list[tuple[Any, Versions]]:
        for name, reference, version in self._watched:
            storage = reference()
            if storage is not None and storage.version != version:
                raise graph.overwritten(name)
        since = graph.now()
        nodes = _nodes(self._as_before(), since)
        names = [node.name for node in nodes]
        if names != self._names:
            raise AutogradError(
                f"checkpoint: the function made other calls when it ran again on the way back "
                f"({_apart(self._names, names)}); it must depend on its arguments alone"
            )
        return [(node.saved, node.versions) for node in nodes]

    def _as_before(self) -> Any:
        """The function, with the random numbers of the first time."""
        now = default_generator.get_state()
        if self._random is not None:
            default_generator.set_state(*self._random)
        token = _repeating.set(object())
        try:
            return self.run()
        finally:
            _repeating.reset(token)
            if self._random is not None:
                default_generator.set_state(*now)


class _Recomputed(Later):
    """Stands for what a node saved: recomputed by its part."""

    def __init__(self, part: _Part, index: int) -> None:
        self._part = part
        self._index = index

    def take(self) -> tuple[Any, Versions]:
        """Run the part again, or take what another node's run has left here."""
        return self._part.take(self._index)


def _nodes(result: object, since: int) -> list[Node]:
    """The nodes made since then on which the tensors of a result depend, in order."""
    nodes: dict[int, Node] = {}
    waiting: list[Node | Leaf | None] = [tensor.node for tensor in _tensors(result)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.number > since and node.number not in nodes:
            nodes[node.number] = node
            waiting += [parent[0] for parent in node.parents if parent is not None]
    return [nodes[number] for number in sorted(nodes)]


def _tensors(result: object) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, (tuple, list, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from _tensors(part)


def _apart(first: list[str], second: list[str]) -> str:
    """Where two lists of calls differ."""
    for number, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return f"call {number} was '{a}' and then '{b}'"
    return f"{len(first)} at first, then {len(second)}"
