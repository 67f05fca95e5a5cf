"""broadcast_, all_reduce_ and all_gather of tensors."""

from __future__ import annotations

import pytest
from rank_threads import ThreadGroup, on_ranks

from gradcli import engine
from gradcli.engine import distributed
from gradcli.engine.distributed import tensors
from gradcli.errors import ShapeError

TYPES = [engine.float32, engine.float64, engine.bfloat16, engine.int32, engine.int64, engine.uint8]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_rank_has_the_sum(size: int, dtype: engine.DType) -> None:
    def task(group: ThreadGroup) -> object:
        tensor = (engine.tensor([[1, 2], [3, 4], [5, 6]]) * (group.rank + 1)).to(dtype)
        assert tensors.all_reduce_(group, tensor) is tensor
        assert tensor.dtype is dtype
        return tensor.tolist()

    times = size * (size + 1) // 2
    assert (
        on_ranks(size, task)
        == [[[times, 2 * times], [3 * times, 4 * times], [5 * times, 6 * times]]] * size
    )


def test_views_and_leaves_are_overwritten_in_place() -> None:
    def task(group: ThreadGroup) -> object:
        base = engine.zeros(2, 3)
        tensors.all_reduce_(group, base.t()[1].add_(1.0))
        leaf = engine.full((), group.rank + 5.0, requires_grad=True)
        tensors.broadcast_(group, leaf, 1)
        return base.tolist(), leaf.item(), leaf.requires_grad

    expected = ([[0, 2, 0], [0, 2, 0]], 6.0, True)
    assert on_ranks(2, task) == [expected] * 2


def test_gathered_tensors_have_their_own_shapes() -> None:
    def task(group: ThreadGroup) -> object:
        own = engine.full((group.rank, 2), float(group.rank))
        return [one.tolist() for one in tensors.all_gather(group, own)]

    assert on_ranks(3, task) == [[[], [[1, 1]], [[2, 2], [2, 2]]]] * 3


@pytest.mark.parametrize("op", ["broadcast_", "all_reduce_"])
def test_other_shapes_on_a_rank_are_refused_by_all(op: str) -> None:
    def task(group: ThreadGroup) -> str:
        arguments = (0,) if op == "broadcast_" else ()
        with pytest.raises(ShapeError) as error:
            getattr(tensors, op)(group, engine.zeros(2 + group.rank // 2), *arguments)
        return error.value.message

    message = (
        f"{op}: rank 2 on node1 (pid 1002) has float32 (3,), "
        "rank 0 on node0 (pid 1000) has float32 (2,)"
    )
    assert on_ranks(3, task) == [message] * 3


def test_one_process_keeps_its_tensors() -> None:
    tensor = engine.randn(3)
    before = tensor.tolist()
    assert distributed.all_reduce_(tensor).tolist() == before
    assert distributed.broadcast_(tensor).tolist() == before
    assert [one.tolist() for one in distributed.all_gather(tensor)] == [before]
    distributed.barrier()
    assert (distributed.rank(), distributed.size(), distributed.local_rank()) == (0, 1, 0)


def test_a_captured_step_stays_eager() -> None:
    @engine.capture
    def step(x: engine.Tensor) -> engine.Tensor:
        return distributed.all_reduce_(x * 2)

    with pytest.warns(UserWarning, match="reads the values of a tensor"):
        results = [step(engine.ones(2)).tolist() for _ in range(4)]
    assert results == [[2, 2]] * 4
