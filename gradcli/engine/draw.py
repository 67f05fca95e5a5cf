"""draw: the graph of what was computed, as text in Graphviz's language DOT.

Nodes keep no shapes for this: one is shown where a name, the tensor drawn or what a gradient needs
gives it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradcli.engine.argument import check_arguments
from gradcli.engine.array import Array
from gradcli.engine.graph import Edge, Leaf, Node
from gradcli.engine.kind import Kind
from gradcli.engine.op import Op
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, parents_of
from gradcli.errors import AutogradError

Shapes = dict[tuple[int, int], Shape]  # by the number of a node or leaf, and which of its outputs


@check_arguments
def draw(*outputs: Tensor, names: Mapping[str, Tensor] | None = None) -> str:
    """What these were computed from, for `dot -Tsvg`: an ellipse an op, a box a leaf.

    `names` are those of leaves, such as `dict(model.named_parameters())`. Inputs that want no
    gradient are no part of the graph, and backward frees it: draw before.
    """
    roots = _edges(outputs)
    shapes: Shapes = {}
    _learn(shapes, roots, [y.shape for y in outputs])
    labels: dict[int, str] = {}
    for name, tensor in (names or {}).items():
        Kind.of(Tensor).convert_argument("draw", f"names[{name!r:.60}]", tensor)
        _learn(shapes, parents_of([tensor]), [tensor.shape])
        if tensor.leaf is not None:
            labels[tensor.leaf.number] = name
    nodes = _reached(roots)
    for node in nodes:
        _learn_from(shapes, node)
    index = {node.number: i for i, node in enumerate(nodes)}
    lines = [_statement(index, node, shapes, labels) for node in nodes]
    lines += [
        f"  n{index[parent[0].number]} -> n{index[node.number]}"
        for node in nodes
        for parent in _parents(node)
    ]
    return "\n".join(["digraph {", *lines, "}", ""])


def _edges(outputs: tuple[Tensor, ...]) -> list[Edge | None]:
    edges = parents_of(outputs)
    if not edges or None in edges:
        raise AutogradError("draw: takes tensors that require a gradient; nothing else has a graph")
    return edges


def _parents(node: Node | Leaf) -> Iterator[Edge]:
    if isinstance(node, Node):
        yield from (parent for parent in node.parents if parent is not None)


def _reached(roots: list[Edge | None]) -> list[Node | Leaf]:
    """The roots, and all nodes and leaves behind them, the oldest first."""
    nodes: dict[int, Node | Leaf] = {}
    waiting = [root[0] for root in roots if root is not None]
    while waiting:
        node = waiting.pop()
        if node.number in nodes:
            continue
        if isinstance(node, Node) and node.saved is None:
            raise AutogradError(
                f"draw: the graph behind {node.name} was freed by backward; draw before it, or "
                "pass it retain_graph=True"
            )
        nodes[node.number] = node
        waiting += [parent[0] for parent in _parents(node)]
    return [nodes[number] for number in sorted(nodes)]


def _learn(shapes: Shapes, edges: Sequence[Edge | None], edge_shapes: Sequence[Shape]) -> None:
    for edge, shape in zip(edges, edge_shapes, strict=True):
        if edge is not None:
            shapes[edge[0].number, edge[1]] = shape


def _learn_from(shapes: Shapes, node: Node | Leaf) -> None:
    """Enter the shapes of what an op saved; a checkpoint saves nothing."""
    if not (isinstance(node, Node) and isinstance(node.rule, Op) and isinstance(node.saved, dict)):
        return
    op, saved = node.rule, node.saved
    if "shapes" in saved:
        _learn(shapes, node.parents, saved["shapes"])
    edges = dict(zip(op.inputs, node.parents, strict=True))
    edges |= {name: (node, i) for i, name in enumerate(op.outputs)}
    for name, edge in edges.items():
        if isinstance(saved.get(name), Array):
            _learn(shapes, [edge], [saved[name].shape])


def _statement(
    index: dict[int, int], node: Node | Leaf, shapes: Shapes, labels: dict[int, str]
) -> str:
    """A node with its name in the first line and its shapes in the second."""
    leaf = isinstance(node, Leaf)
    name = labels.get(node.number, "") if isinstance(node, Leaf) else node.name
    count = 1 if isinstance(node, Leaf) else node.outputs
    sizes = [str(shapes[node.number, i]) for i in range(count) if (node.number, i) in shapes]
    label = "\\n".join(_quoted(line) for line in (name, " ".join(sizes)) if line)
    return f'  n{index[node.number]} [label="{label or "leaf"}"{", shape=box" * leaf}]'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
