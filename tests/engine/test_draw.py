"""The graph as text for Graphviz: its nodes, edges, names and shapes, and what has no graph."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import AutogradError


def test_ops_are_ellipses_and_leaves_boxes_each_with_name_and_shape() -> None:
    layer = nn.Linear(3, 2)
    y = layer(engine.ones(4, 3)).gelu()
    assert engine.draw(y, names=dict(layer.named_parameters())) == (
        "digraph {\n"
        '  n0 [label="weight\\n(2, 3)", shape=box]\n'
        '  n1 [label="bias\\n(2,)", shape=box]\n'
        '  n2 [label="linear\\n(4, 2)"]\n'
        '  n3 [label="gelu\\n(4, 2)"]\n'
        "  n0 -> n2\n"
        "  n1 -> n2\n"
        "  n2 -> n3\n"
        "}\n"
    )


def test_a_shape_that_nobody_keeps_is_not_shown() -> None:
    y = nn.Linear(3, 2)(engine.ones(4, 3)).relu()  # whose gradient needs what it gave
    assert '[label="linear"]' in engine.draw(y)


def test_a_tensor_used_twice_is_one_node_with_two_edges() -> None:
    x = engine.ones(3, requires_grad=True)
    text = engine.draw((x * x).sum())
    assert text.count("shape=box") == 1
    assert text.count("n0 -> n1\n") == 2
    assert 'n0 [label="(3,)", shape=box]' in text


def test_several_outputs_are_drawn_in_one_graph_with_all_their_shapes() -> None:
    x = engine.ones(4, 5, requires_grad=True)
    text = engine.draw(*engine.split(x, [2, 3], 1))
    assert 'n1 [label="split\\n(4, 2) (4, 3)"]' in text
    assert text.count("->") == 1


def test_a_name_with_quotes_is_escaped() -> None:
    x = engine.ones(2, requires_grad=True)
    assert r'label="a\"b\\c\n(2,)"' in engine.draw(x, names={'a"b\\c': x})


def test_names_of_tensors_outside_of_the_graph_do_no_harm() -> None:
    x, far = engine.ones(2, requires_grad=True), engine.ones(3, requires_grad=True)
    assert "far" not in engine.draw(x.exp(), names={"far": far, "made": x.exp()})


def test_a_long_graph_is_drawn_without_recursion() -> None:
    x = engine.ones((), requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + x
    assert engine.draw(y).count("->") == 10000


def test_a_checkpoint_is_drawn_and_does_not_run_again() -> None:
    x = engine.ones(2, requires_grad=True)
    calls = []

    def part(x: engine.Tensor) -> engine.Tensor:
        calls.append(1)
        return x.exp().tanh()

    y = engine.checkpoint(part, x)
    text = engine.draw(y)
    assert '"exp"' in text and '"tanh\\n(2,)"' in text
    y.sum().backward()
    assert len(calls) == 2


def test_a_function_of_the_users_own_and_a_second_way_back_are_drawn() -> None:
    class Twice(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = engine.ones(2, requires_grad=True)
    y = Twice.apply(x).exp().sum()
    (slope,) = engine.grad(y, [x], create_graph=True)
    assert '[label="Twice' in engine.draw(y)
    assert engine.draw(slope).count("->") >= 3


def test_what_has_no_graph_is_refused() -> None:
    x = engine.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(AutogradError, match="draw: the graph behind sum was freed by backward"):
        engine.draw(y)
    for none in ((engine.ones(2),), (x, x.detach()), ()):
        with pytest.raises(AutogradError, match="draw: takes tensors that require a gradient"):
            engine.draw(*none)
