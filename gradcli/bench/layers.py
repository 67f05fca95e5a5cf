"""The layer of the model that a kernel call belongs to, in the forward and the backward pass.

While a step is recorded, hooks of each layer report its scope. Nodes and scopes take their numbers
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


THE_REST = Scope("the rest")


class Scopes:
    """The current scope, and the scope in which each node was built, by the numbers of nodes."""

    def __init__(self) -> None:
        self.now = THE_REST
        self._before: list[Scope] = []
        self._numbers: list[int] = []
        self._owners: list[Scope] = []

    @contextmanager
    def of(self, scope: Scope) -> Iterator[None]:
        """Make a scope current inside a `with` block."""
        self.begin(scope)
        try:
            yield
        finally:
            self.end()

    def begin(self, scope: Scope) -> None:
        """Make a scope current until `end`."""
        self._before.append(self.now)
        self._change(scope)

    def end(self) -> None:
        """Return to the scope before."""
        self._change(self._before.pop())

    def _change(self, scope: Scope) -> None:
        self.now = scope
        self._numbers.append(now())
        self._owners.append(scope)

    def of_node(self, node: Node) -> Scope:
        """The scope in which the node was built."""
        at = bisect_right(self._numbers, node.number) - 1
        return self._owners[at] if at >= 0 else THE_REST

    def calling(self, scope: Scope, function: Callable[..., object]) -> Callable[..., Any]:
        """The function, which runs in this scope."""

        def run(*arguments: object, **keywords: object) -> Any:
            with self.of(scope):
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
def watched(job: Job, plan: Sequence[PlannedLayer], scopes: Scopes) -> Iterator[Job]:
    """The job with layers and a loss that report their scopes inside the `with` block."""
    with ExitStack() as handles:
        for title, module in owners(plan, list(job.model.children())):
            for handle in _marks(module, Scope(title), scopes):
                handles.callback(handle.remove)
        yield replace(job, loss=_marking(job.loss, scopes))


def _marks(module: nn.Module, scope: Scope, scopes: Scopes) -> Iterator[RemovableHandle]:
    """Hooks around the module's forward."""
    yield module.register_forward_pre_hook(lambda module, args: scopes.begin(scope))
    yield module.register_forward_hook(lambda module, args, output: scopes.end())


def _marking(
    loss: Callable[[Tensor, Tensor], Tensor], scopes: Scopes
) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss; each node of its graph reports its scope in the backward pass."""

    def call(outputs: Tensor, targets: Tensor) -> Tensor:
        with scopes.of(Scope("loss")):
            result = loss(outputs, targets)
        for node in graph(result):
            node.rule = _MarkedRule(node.rule, scopes, scopes.of_node(node)._replace(backward=True))
        return result

    return call


class _MarkedRule:
    """A node's rule that runs in a given scope."""

    def __init__(self, rule: Rule, scopes: Scopes, scope: Scope) -> None:
        self.name = rule.name
        self.backward: Callable[[Gradients, Any], Gradients] = scopes.calling(scope, rule.backward)
        self.backward_create_graph = rule.backward_create_graph


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
