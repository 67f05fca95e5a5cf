"""How products are cut into tiles and pieces, and that no sum depends on the tile it is made in."""

from __future__ import annotations

import random

import pytest
from host_driver import HostDriver

from gradcli.engine.device.gpu import tiles
from gradcli.engine.device.gpu.launch import LaunchList
from gradcli.engine.device.gpu.tiles import (
    FEW_BLOCKS,
    SKINNY,
    TENSOR_TILES,
    TILES,
    Tile,
    cut,
    pieces,
    tensor_cut,
)
from gradcli.engine.kernelcheck import bounds
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.others import other_calls
from gradcli.engine.kernelcheck.reference import on_tensor_cores, reference
from gradcli.engine.kernelcheck.replay import Bench, difference, plan_of
from gradcli.engine.kernelcheck.samples import sampled_calls

PRODUCTS = ("matmul", "conv2d_forward", "conv2d_grad_input", "conv2d_grad_weight")
MOST_CALLS = 12  # of each kernel


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(HostDriver())


@pytest.fixture(scope="module")
def calls() -> list[CheckedCall]:
    """Some calls of each kernel, the largest of them."""
    found: list[CheckedCall] = []
    for some in (sampled_calls(PRODUCTS.__contains__), other_calls(PRODUCTS.__contains__)):
        for listed in some.values():
            by_size = sorted(listed, key=lambda call: sum(len(b.data) for b in call.blocks))
            found += by_size[-MOST_CALLS:]
    return found


def tiled(plan: LaunchList) -> bool:
    """In tiles, and not in pieces, which would be other ones for other tiles."""
    kernels = [launch.kernel for launch in plan.launches]
    return len(kernels) == 1 and kernels[0].split("_")[-2] in {tile.name for tile in TILES}


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
def test_every_tile_gives_the_same_bits(
    tile: Tile, calls: list[CheckedCall], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = set()
    for call in calls:
        usual = plan_of(call)
        found = bench.run(call)
        with monkeypatch.context() as patched:
            patched.setattr(tiles, "TILES", (tile,))
            patched.setattr(tiles, "SKINNY", SKINNY._replace(rows=0))
            plan = plan_of(call)
            if not tiled(plan):
                continue
            other = bench.run(call)
        bound = bounds.bound(call.kernel, {one.module.family for one in plan.launches})
        assert difference(other, reference(call, plan), bound) == "", str(call)
        if len(usual.launches) == 1:
            assert other.blocks == found.blocks, str(call)
        tried.add(call.kernel)
    assert tried == set(PRODUCTS)


@pytest.mark.parametrize("tile", TENSOR_TILES, ids=lambda tile: tile.name)
def test_every_tile_of_tensor_cores_gives_the_same_bits(
    tile: Tile, calls: list[CheckedCall], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = set()
    for call in calls:
        usual = plan_of(call)
        if len(usual.launches) > 1 or not on_tensor_cores(usual):
            continue
        found = bench.run(call)
        with monkeypatch.context() as patched:
            patched.setattr(tiles, "TENSOR_TILES", (tile,))
            if len(plan_of(call).launches) == 1:
                assert bench.run(call).blocks == found.blocks, str(call)
                tried.add(call.kernel)
    assert tried == set(PRODUCTS)


def test_large_products_have_large_tiles() -> None:
    assert cut(1, 4096, 4096, 4096).tile.name == "128"
    assert cut(1, 4096, 4096, 4096).pieces == 1
    assert cut(1, 512, 512, 64).tile.name == "32"
    assert cut(1, 1000, 1000, 64).tile.name == "64"
    assert cut(200, 60, 60, 64).tile.name == "128"
    assert tensor_cut(1, 4096, 4096, 4096, 32).tile.name == "128"
    assert tensor_cut(1, 1024, 1024, 1024, 32).tile.name == "64"


def test_products_of_few_rows_have_thin_tiles() -> None:
    assert cut(1, 16, 50_000, 700).tile is SKINNY
    assert cut(1, 17, 50_000, 700).tile is not SKINNY


def test_few_tiles_are_made_in_pieces() -> None:
    whole = cut(1, 256, 784, 60_000)
    assert whole.pieces > 1
    assert whole.blocks[0] >= FEW_BLOCKS
    assert cut(1, 128, 128, 64).pieces == 1


def test_pieces_make_up_the_depth() -> None:
    numbers = random.Random(1)
    for _ in range(2000):
        depth, blocks = numbers.choice([0, 1, 127, 128, 4096, 10**6]), numbers.randrange(1, 400)
        depth += numbers.randrange(300)
        count, piece = pieces(blocks, depth, 128)
        assert (count - 1) * piece < max(1, depth) <= count * piece
        count, piece = pieces(blocks, depth, 128, 16)
        assert (count - 1) * piece < max(1, depth) <= count * piece
        assert piece % 16 == 0


def test_divisors_divide() -> None:
    """As csrc/gpu/divide.h does, for all dividends below 2^31."""
    numbers = random.Random(2)
    for _ in range(5000):
        divisor = numbers.choice([numbers.randrange(1, 70), numbers.randrange(1, 1 << 31)])
        near = numbers.randrange(1 << 31) // divisor * divisor
        by, magic, shift = tiles._DIVISOR.unpack(tiles.divisor(divisor))
        assert magic < 1 << 32
        for n in (near, max(0, near - 1), (1 << 31) - 1, 0):
            assert (n if by == 1 else (n * magic >> 32) >> shift) == n // divisor
