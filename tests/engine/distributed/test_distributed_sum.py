"""Sums over ranks: equal bits with one rank, whatever way the numbers take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rank_threads import Network, ThreadGroup, on_ranks

from gradcli import engine
from gradcli.engine.array import Array
from gradcli.engine.distributed import ALONE, Sum, exact, tree
from gradcli.engine.distributed.tree import Run
from gradcli.engine.dtype import DType
from gradcli.errors import DTypeError

LENGTH = 1001
WAYS = {"slices": exact.slices, "halving": exact.halving, "doubling": exact.doubling}


@functools.cache
def row_of(part: int, length: int, dtype: DType) -> engine.Tensor:
    """A part's numbers: of every size, so that another order of additions has other bits."""
    generator = engine.Generator().manual_seed(part)
    powers = engine.randn(length, generator=generator) * 4
    return (engine.randn(length, generator=generator) * powers.exp()).to(dtype)


def summed(node: Run, length: int, dtype: DType) -> engine.Tensor:
    """The definition, by recursion and tensors."""
    if node.high - node.low == 1:
        return row_of(node.low, length, dtype)
    half = tree.middle(*node)
    return summed(Run(node.low, half), length, dtype) + summed(Run(half, node.high), length, dtype)


def bits(tensor: engine.Tensor) -> bytes:
    return bytes(tensor.memoryview())


def sums(
    size: int,
    parts: int,
    length: int = LENGTH,
    dtype: DType = engine.float32,
    network: Network | None = None,
    **options: Any,
) -> list[bytes]:
    """The bits that each rank has; the sum is made twice, the first time of something else."""

    def task(group: ThreadGroup) -> bytes:
        one = Sum(parts, length, dtype, group=group, **options)
        one.source.fill_(7)
        one.sum()
        for number, node in enumerate(one.nodes):
            one.source[number].copy_(summed(node, length, dtype))
        source = bits(one.source)
        one.sum()
        assert bits(one.source) == source
        assert one.count == 2
        return bits(one.out)

    return on_ranks(size, task, network=network)


def way(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(exact, "steps", WAYS[name])


def test_one_rank_has_one_row() -> None:
    one = Sum(7, 100, group=ALONE)
    one.source.copy_(engine.randn(1, 100))
    one.sum()
    assert one.nodes == ((0, 7),)
    assert bits(one.out) == bits(one.source)


@pytest.mark.parametrize("size", range(1, 17))
def test_every_number_of_ranks_has_the_bits_of_the_tree(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = WAYS if size in (2, 4, 8, 16) else ["slices"]
    for parts in (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33, 64):
        expected = bits(summed(Run(0, parts), 101, engine.float32))
        for name in ways:
            way(monkeypatch, name)
            assert sums(size, parts, 101) == [expected] * size, (parts, name)


@pytest.mark.parametrize("parts", range(1, 65))
def test_every_number_of_parts_has_the_bits_of_the_tree(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bits(summed(Run(0, parts), 50, engine.float32))
    for size, name in ((3, "slices"), (4, "slices"), (4, "halving"), (8, "doubling")):
        way(monkeypatch, name)
        assert sums(size, parts, 50) == [expected] * size, (size, name)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.bfloat16], ids=str)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 1000, 4099])
def test_lengths_and_types(
    length: int, dtype: DType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(monkeypatch, name)
    for parts in (3, 8):
        expected = bits(summed(Run(0, parts), length, dtype))
        assert sums(4, parts, length, dtype) == [expected] * 4


def test_the_order_matters_for_these_numbers() -> None:
    """Else the tests above would pass with any order."""
    rows = [row_of(part, LENGTH, engine.float32) for part in range(8)]
    chain = functools.reduce(lambda a, b: a + b, rows)
    assert bits(chain) != bits(summed(Run(0, 8), LENGTH, engine.float32))


def test_small_sums_take_fewer_rounds() -> None:
    tiny, small, large, odd = Network(8), Network(8), Network(8), Network(3)
    sums(8, 8, exact.TINY // 4, network=tiny)
    sums(8, 8, exact.SMALL // 4, network=small)
    sums(8, 8, exact.SMALL // 4 + 1, network=large)
    sums(3, 3, 1024, network=odd)
    assert len(tiny.sent) == 2 * 8 * 3  # twice, on 8 ranks, 3 rounds
    assert len(small.sent) == 2 * 8 * 6  # 3 rounds there and 3 back
    assert len(large.sent) == 2 * 8 * 14
    assert len(odd.sent) == 2 * 3 * 4


def test_two_ranks_send_each_other_their_rows_once() -> None:
    network = Network(2)
    sums(2, 4, exact.SMALL // 4, network=network)
    assert network.sent == [exact.SMALL] * 4


@pytest.mark.parametrize("name", ["slices", "halving"])
def test_the_bytes_are_those_of_a_ring(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    way(monkeypatch, name)
    network = Network(4)
    sums(4, 8, 1024, network=network)
    assert sum(network.sent) == 2 * 4 * (2 * 3 * 1024 // 4 * 4)


def test_the_library_adds_all_nodes_of_all_ranks() -> None:
    for size, parts in ((1, 4), (2, 6), (3, 4), (4, 3)):
        results = sums(size, parts, 64, engine.float64, how="library")
        exact_sum = summed(Run(0, parts), 64, engine.float64)
        for data in results:
            result = engine.frombuffer(data, dtype=engine.float64)
            assert engine.allclose(result, exact_sum, rtol=1e-12, atol=1e-9)
        assert len(set(results)) == 1


def test_the_library_reads_a_single_row_where_it_lies() -> None:
    class Silent(ThreadGroup):
        def all_reduce(self, source: memoryview, out: memoryview, *_: str) -> None:
            sources.append(source)

    sources: list[memoryview] = []
    one = Sum(2, 5, how="library", group=Silent(Network(2), 0))
    one.sum()
    one.source.fill_(1.5)
    assert bytes(sources[0]) == bits(one.source)


def test_the_library_has_no_bfloat16() -> None:
    with pytest.raises(DTypeError, match="MPI has no bfloat16"):
        Sum(2, 3, engine.bfloat16, "library", group=ALONE)


def test_a_sum_is_imagined_on_meta() -> None:
    def task(group: ThreadGroup) -> None:
        one = Sum(4, 10, group=group, device="meta")
        one.sum()
        assert one.out.shape == (10,)

    on_ranks(1, task)


# -- what a wrong sum looks like: each of these must be seen above ---------------------

Calls = Sequence[tuple[str, tuple[Array, ...]]]


def no_sum(calls: Calls) -> None:
    """Nothing is added: every rank goes on with what lay there."""


def twice(calls: Calls) -> None:
    """The right operand is added once more."""
    exact_run(calls)
    exact_run([(kernel, (out, *sources[1:], out)) for kernel, (*sources, out) in calls])


def of_copies(calls: Calls) -> None:
    """The numbers arrive in a copy."""
    exact_run([(kernel, (*arrays[:-1], arrays[-1].copy())) for kernel, arrays in calls])


def of_bytes(calls: Calls) -> None:
    """What an MPI that is not told the type of the elements does."""
    for _, (*sources, out) in calls:
        columns = zip(*(source.contiguous().memoryview() for source in sources), strict=True)
        out.memoryview()[:] = bytes(sum(column) % 256 for column in columns)


exact_run = exact._run


@pytest.mark.parametrize("fault", [no_sum, twice, of_copies, of_bytes], ids=lambda f: f.__name__)
def test_planted_faults_change_the_bits(
    fault: Callable[[Calls], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bits(summed(Run(0, 4), LENGTH, engine.float32))
    assert sums(2, 4) == [expected] * 2
    monkeypatch.setattr(exact, "_run", fault)
    assert all(data != expected for data in sums(2, 4))
