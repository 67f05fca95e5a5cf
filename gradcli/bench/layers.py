"""The layer of the model that a kernel call belongs to, in the forward and the backward pass.

While a step is recorded, hooks of each layer report its turn. Nodes and turns take their numbers
from one counter, so each node of the loss's graph learns in which layer it was built; a call of the
backward pass belongs to the layer of the node that made it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.engine.graph import Gradients, Leaf, Node, Rule, now

if TYPE_CHECKING:
    from gradcli.config.planned import PlannedLayer
    from gradcli.engine import Tensor, nn
    from gradcli.engine.hooks import RemovableHandle
    from gradcli.train.job import Job


class Scope(NamedTuple):
    """What a call belongs to: a layer or another part of the step, forward or backward."""

    owner: str
    backward: bool = False


ELSEWHERE = Scope("the rest")


class Scopes:
    """The current turn, and the turn in which each node was built, by the numbers of nodes."""

    def __init__(self) -> None:
        self.now = ELSEWHERE
        self._before: list[Scope] = []
        self._numbers: list[int] = []
        self._owners: list[Scope] = []

    @contextmanager
    def of(self, turn: Scope) -> Iterator[None]:
        """Make a turn current inside a `with` block."""
        self.begin(turn)
        try:
            yield
        finally:
            self.end()

    def begin(self, turn: Scope) -> None:
        """Make a turn current until `end`."""
        self._before.append(self.now)
        self._change(turn)

    def end(self) -> None:
        """Return to the turn before."""
        self._change(self._before.pop())

    def _change(self, turn: Scope) -> None:
        self.now = turn
        self._numbers.append(now())
        self._owners.append(turn)

    def of_node(self, node: Node) -> Scope:
        """The turn in which the node was built."""
        at = bisect_right(self._numbers, node.number) - 1
        return self._owners[at] if at >= 0 else ELSEWHERE

    def calling(self, turn: Scope, function: Callable[..., object]) -> Callable[..., Any]:
        """The function, which runs in this turn."""

        def run(*arguments: object, **keywords: object) -> Any:
            with self.of(turn):
                return function(*arguments, **keywords)

        return run


def owners(
    plan: Sequence[PlannedLayer], modules: Sequence[nn.Module]
) -> Iterator[tuple[str, nn.Module]]:
    """Each layer's row title and its module, containers before what is inside them."""
    for layer, module in zip(plan, modules, strict=True):
        yield f"{layer.index} {layer.title}", module
        inside = list(module.children())
        if len(inside) == len(layer.children):
            yield from owners(layer.children, inside)


@contextmanager
def watched(job: Job, plan: Sequence[PlannedLayer], turns: Scopes) -> Iterator[Job]:
    """The job with layers and a loss that report their turns inside the `with` block."""
    with ExitStack() as handles:
        for title, module in owners(plan, list(job.model.children())):
            for handle in _marks(module, Scope(title), turns):
                handles.callback(handle.remove)
        yield replace(job, loss=_marking(job.loss, turns))


def _marks(module: nn.Module, turn: Scope, turns: Scopes) -> Iterator[RemovableHandle]:
    """Hooks around the module's forward."""
    yield module.register_forward_pre_hook(lambda module, args: turns.begin(turn))
    yield module.register_forward_hook(lambda module, args, output: turns.end())


def _marking(
    loss: Callable[[Tensor, Tensor], Tensor], turns: Scopes
) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss; each node of its graph reports its turn in the backward pass."""

    def call(outputs: Tensor, targets: Tensor) -> Tensor:
        with turns.of(Scope("loss")):
            result = loss(outputs, targets)
        for node in graph(result):
            node.rule = _MarkedRule(node.rule, turns, turns.of_node(node)._replace(backward=True))
        return result

    return call


class _MarkedRule:
    """A node's rule that runs in a given turn."""

    def __init__(self, rule: Rule, turns: Scopes, turn: Scope) -> None:
        self.name = rule.name
        self.backward: Callable[[Gradients, Any], Gradients] = turns.calling(turn, rule.backward)
        self.backward_recorded = rule.backward_recorded


def graph(result: Tensor) -> list[Node]:
    """Every node of the result's graph."""
    nodes: dict[int, Node] = {}
    waiting: list[Node | Leaf | None] = [result.node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.number not in nodes:
            nodes[node.number] = node
            waiting += [parent[0] for parent in node.parents if parent is not None]
    return list(nodes.values())
