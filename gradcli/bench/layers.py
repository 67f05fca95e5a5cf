"""Which layer of the model a kernel call belongs to, in the forward pass and on the way back.

While a step is recorded, hooks of each layer say whose turn it is. Once the loss is there, each
node of its graph learns the layer in which it was made, because nodes and turns are numbered from
one counter; in backward a call belongs to the layer whose node asked for it.
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


class Turn(NamedTuple):
    """Whose calls these are: a layer or another part of the step; on the way back or not."""

    owner: str
    backward: bool = False


ELSEWHERE = Turn("the rest")


class Turns:
    """Whose turn it is now, and whose it was when each number was drawn."""

    def __init__(self) -> None:
        self.now = ELSEWHERE
        self._before: list[Turn] = []
        self._numbers: list[int] = []
        self._owners: list[Turn] = []

    @contextmanager
    def of(self, turn: Turn) -> Iterator[None]:
        """It is this turn inside a `with` block."""
        self.begin(turn)
        try:
            yield
        finally:
            self.end()

    def begin(self, turn: Turn) -> None:
        """It is this turn, until its end."""
        self._before.append(self.now)
        self._change(turn)

    def end(self) -> None:
        """The turn before goes on."""
        self._change(self._before.pop())

    def _change(self, turn: Turn) -> None:
        self.now = turn
        self._numbers.append(now())
        self._owners.append(turn)

    def born(self, node: Node) -> Turn:
        """Whose turn it was when the node was made."""
        at = bisect_right(self._numbers, node.number) - 1
        return self._owners[at] if at >= 0 else ELSEWHERE

    def calling(self, turn: Turn, function: Callable[..., object]) -> Callable[..., Any]:
        """The function; while it runs it is this turn."""

        def called(*arguments: object, **named: object) -> Any:
            with self.of(turn):
                return function(*arguments, **named)

        return called


def owners(
    planned: Sequence[PlannedLayer], modules: Sequence[nn.Module]
) -> Iterator[tuple[str, nn.Module]]:
    """Each layer's row title and its module, containers before what is inside them."""
    for layer, module in zip(planned, modules, strict=True):
        yield f"{layer.index} {layer.title}", module
        inside = list(module.children())
        if len(inside) == len(layer.children):
            yield from owners(layer.children, inside)


@contextmanager
def watched(job: Job, planned: Sequence[PlannedLayer], turns: Turns) -> Iterator[Job]:
    """The job whose layers and loss say when it is their turn, while the block lasts."""
    with ExitStack() as handles:
        for title, module in owners(planned, list(job.model.children())):
            for handle in _marks(module, Turn(title), turns):
                handles.callback(handle.remove)
        yield replace(job, loss=_marking(job.loss, turns))


def _marks(module: nn.Module, turn: Turn, turns: Turns) -> Iterator[RemovableHandle]:
    """Hooks around the module's forward."""
    yield module.register_forward_pre_hook(lambda module, args: turns.begin(turn))
    yield module.register_forward_hook(lambda module, args, output: turns.end())


def _marking(
    loss: Callable[[Tensor, Tensor], Tensor], turns: Turns
) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss; each node of its graph takes its turn on the way back."""

    def marked(outputs: Tensor, targets: Tensor) -> Tensor:
        with turns.of(Turn("loss")):
            result = loss(outputs, targets)
        for node in graph(result):
            node.rule = _Marked(node.rule, turns, turns.born(node)._replace(backward=True))
        return result

    return marked


class _Marked:
    """A node's rule that says whose turn it is."""

    def __init__(self, rule: Rule, turns: Turns, turn: Turn) -> None:
        self.name = rule.name
        self.backward: Callable[[Gradients, Any], Gradients] = turns.calling(turn, rule.backward)
        self.backward_recorded = rule.backward_recorded


def graph(result: Tensor) -> list[Node]:
    """Every node that the result was made from."""
    found: dict[int, Node] = {}
    waiting: list[Node | Leaf | None] = [result.node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.number not in found:
            found[node.number] = node
            waiting += [parent[0] for parent in node.parents if parent is not None]
    return list(found.values())
