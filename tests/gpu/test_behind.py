"""A row behind a product: the bits are those of two calls, however the product is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from host_driver import HostDriver
from settings import SETTINGS, under

from gradcli.engine.device import cpu
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.others import other_calls
from gradcli.engine.kernelcheck.replay import Bench, plan_of

ALONE = {"matmul_then": "matmul", "conv2d_forward_then": "conv2d_forward"}
NAMES = {number: name for name, number in cpu.KERNELS.items()}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(HostDriver(checked=False))


def apart(call: CheckedCall) -> tuple[CheckedCall, CheckedCall]:
    """The product into the last tensor, and the row on it."""
    *sizes, number = call.sizes
    product = replace(
        call,
        kernel=ALONE[call.kernel],
        tensors=(*call.tensors[:3], call.tensors[5]),
        sizes=tuple(sizes),
        options=call.options[2:],
    )
    kernel, out = NAMES[number], call.tensors[5]
    kept = (call.tensors[3],) if kernel.endswith("_backward") else ()
    row = replace(
        call, kernel=kernel, tensors=(*kept, out, out), sizes=(), options=call.options[:2]
    )
    return product, row


@pytest.mark.parametrize("kernel", ALONE)
def test_a_row_behind_a_product_gives_the_bits_of_two_calls(kernel: str, bench: Bench) -> None:
    for call in other_calls(kernel.__eq__)[kernel]:
        for setting in SETTINGS:
            with under(setting):
                product, row = apart(call)
                found, alone = bench.run(call), bench.run(product)
                out, pre = call.tensors[5].block, call.tensors[4]
                assert 0 in pre.shape or found.blocks[pre.block] == alone.blocks[out], str(call)
                blocks = tuple(
                    replace(b, data=data) for b, data in zip(call.blocks, alone.blocks, strict=True)
                )
                assert found.blocks[out] == bench.run(replace(row, blocks=blocks)).blocks[out], call


def test_small_products_take_one_launch_with_their_row() -> None:
    for kernel in ALONE:
        plans = [plan_of(call) for call in other_calls(kernel.__eq__)[kernel]]
        assert {len(plan.launches) for plan in plans} <= {0, 1, 2}
        assert sum(len(plan.launches) == 1 for plan in plans) > len(plans) // 2
