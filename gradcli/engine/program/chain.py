"""How the kernel `chain` is told its steps: see csrc/cpu/elementwise/chain.h."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.dataclass import dataclass
from gradcli.engine.device.kernels import FACTS, NAMES

INPUTS, OUTPUTS, STEPS, SCRATCH, PAIRS = 5, 3, 15, 8, 4
FIRST_OUTPUT, FIRST_SCRATCH = INPUTS, INPUTS + OUTPUTS


@dataclass(frozen=True)
class Instruction:
    """A row: which slots it reads and writes, and which pair of options is its own."""

    kernel: str
    operands: tuple[int, ...]
    result: int
    pair: int = 0


def packed(steps: Sequence[Instruction]) -> tuple[int, ...]:
    """The sizes of a call."""
    return len(steps), *(_packed(step) for step in steps)


def _packed(step: Instruction) -> int:
    fields = [*step.operands, *(0,) * (4 - len(step.operands)), step.result, step.pair]
    return FACTS[step.kernel].number + sum(field << (16 + 4 * i) for i, field in enumerate(fields))


def unpacked(sizes: Sequence[int]) -> list[Instruction]:
    """The steps of a call."""
    return [_unpacked(size) for size in sizes[1 : 1 + sizes[0]]]


def _unpacked(size: int) -> Instruction:
    *operands, result, pair = (size >> (16 + 4 * i) & 15 for i in range(6))
    kernel = NAMES[size & 0xFFFF]
    return Instruction(kernel, tuple(operands[: FACTS[kernel].inputs]), result, pair)


def may_lie_over(steps: Sequence[Instruction], output: int, source: int) -> bool:
    """Whether an output may overwrite an input: no step reads that afterwards."""
    first = next(i for i, step in enumerate(steps) if step.result == output)
    return all(source not in step.operands for step in steps[first + 1 :])
