"""How reductions, rows and copies are shared by the threads of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gradcli.engine.device.gpu import launches
from gradcli.engine.device.gpu.launch import LAUNCHERS, CallSpec, Draft, KernelModule
from gradcli.engine.device.gpu.lines import even_cut, lines_of, parts, power_of_two
from gradcli.engine.device.gpu.rows import PER_THREAD, rows_of
from gradcli.engine.device.gpu.sorting import sort
from gradcli.engine.device.gpu.walk import merged
from gradcli.engine.dtype import DType, float32
from gradcli.engine.shape import Shape, contiguous_strides

SHAPES = [(1, 1, 1), (1, 70_001, 1), (33, 257, 1), (3, 4_000, 3), (128, 64, 128), (7, 0, 7)]

assert launches  # imported to fill LAUNCHERS


@dataclass(frozen=True)
class Tensor:
    shape: Shape
    strides: Shape
    dtype: DType = float32


def laid(*shape: int) -> Tensor:
    return Tensor(shape, contiguous_strides(shape))


@pytest.mark.parametrize(("results", "n", "inner"), SHAPES)
@pytest.mark.parametrize("cut", [True, False])
def test_every_element_of_a_line_has_one_thread(
    results: int, n: int, inner: int, cut: bool
) -> None:
    line = lines_of(results, n, inner, cut=cut)
    assert line.chunk * (line.chunks - 1) < max(1, n) <= line.chunk * line.chunks
    assert line.chunks == 1 or cut
    assert line.members == power_of_two(line.members, line.threads)
    blocks, chunks, _ = line.grid
    assert chunks == line.chunks
    assert (blocks - 1) * line.threads < results * line.members <= blocks * line.threads


def test_neighbouring_threads_read_neighbouring_columns() -> None:
    assert lines_of(1_000, 5_000, 1_000).members == 8  # a warp of columns in a block of 256
    assert lines_of(3, 5_000, 3).members == 64  # there are no more of them


def test_a_long_line_keeps_many_blocks_busy() -> None:
    line = lines_of(1, 10_000_000, 1)
    assert line.grid == (1, 1_024, 1)
    assert parts(line).grid == (1, 1, 1)


def test_what_a_thread_goes_through_is_as_long_as_there_are_such_pieces() -> None:
    assert even_cut(0) == even_cut(200) == 16
    assert even_cut(1_000_000) == 1_000


@pytest.mark.parametrize("n", [0, 1, 8, 9, 255, 257, 4_096])
def test_a_row_fits_the_registers_of_its_threads(n: int) -> None:
    rows = rows_of(100, n, 512)
    assert rows is not None
    assert rows.members * PER_THREAD >= n
    assert rows.threads % rows.members == 0
    assert rows.blocks * (rows.threads // rows.members) >= 100


def test_a_longer_row_is_no_short_one() -> None:
    assert rows_of(100, 512 * PER_THREAD + 1, 512) is None


@pytest.mark.parametrize("n", [1, 1_024, 1_025, 5_000])
def test_a_sort_stays_in_its_scratch_memory(n: int) -> None:
    call = Draft("sort", (laid(3, n),))
    begin = call.scratch(8)
    keys, places = sort(call, begin, 3, n, suffix="i64")
    assert {keys.offset, places.offset} < set(range(8, call.nbytes))
    assert keys.offset % 8 == 0
    assert call.nbytes == 8 + 24 * 3 * n
    runs = -(-n // 1_024)
    assert len(call.launches) == 1 + (runs - 1).bit_length()


def test_dimensions_that_lie_one_behind_the_other_are_one() -> None:
    assert merged([laid(3, 4, 5), laid(3, 4, 5)]) == [(60, (1, 1))]
    turned = Tensor((3, 4, 5), (1, 15, 3))
    assert merged([turned, laid(3, 4, 5)]) == [(3, (1, 20)), (20, (3, 1))]
    assert merged([Tensor((2, 1, 6), (6, 9, 1)), laid(2, 1, 6)]) == [(12, (1, 1))]


@pytest.mark.parametrize(
    ("shape", "strides", "kernel"),
    [
        ((40, 70), (1, 40), "copy_turned_f32"),
        ((2, 70, 40), (2_800, 1, 70), "copy_turned_f32"),
        ((7, 70), (1, 7), "copy_of_f32_f32"),
        ((40, 70), (70, 1), "copy_of_f32_f32"),
        ((40, 70), (140, 2), "copy_of_f32_f32"),
    ],
)
def test_a_copy_goes_through_tiles_where_neighbours_differ(
    shape: Shape, strides: Shape, kernel: str
) -> None:
    plan = LAUNCHERS["copy"](CallSpec("copy", (Tensor(shape, strides), laid(*shape))))
    assert [launch.kernel for launch in plan.launches] == [kernel]


def test_modules_of_different_chains_have_names_of_their_own() -> None:
    names = {
        str(KernelModule("chain", "f32", row))
        for row in ("s5 = ROW(exp)(s0);", "s5 = ROW(log)(s0);")
    }
    assert len(names) == 2
    assert all(len(name) < 40 for name in names)
    assert str(KernelModule("elementwise", "f32", "exp")) == "elementwise.f32.exp"
