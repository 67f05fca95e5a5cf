"""Which mutants are not tried: what has no result to be wrong, and what is argued to be the same.

Each is counted and printed; a mutant that the compiler makes the same machine code of needs no line
here, nor does code of other instruction sets, which is not compiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from c_mutants import Mutant


@dataclass(frozen=True)
class Rule:
    """Mutants that change how fast something is and nothing else, by file and line."""

    name: str
    file: str  # a pattern of the path's end
    line: str  # a pattern in the line
    operators: tuple[str, ...] = ()  # none: all


_TASKS = (
    r"GC_(BLOCK|ROWS|MANY|RECURRENT_(TASKS|ROWS|MANY|NEAR)|HEAD_TASKS|POOL2D_WORK|RESIZE_WORK|"
    r"CONV2D_(COPY|WORK|TASKS|PACKED|MAX_RUNS|PARTIAL|BATCH)|CHAIN_CACHE|SHARED_WORK|QUERIES|KEYS|"
    r"WHOLE|CHANNEL) = "
)
RULES = (
    Rule("how much is one task or stays in a cache", r"\.h", _TASKS, ("number",)),
    Rule("an estimate of a call's work, which decides who does it", r"", r"(plan->|plan\.)work\b"),
    Rule("whether one thread does a wave alone", r"", r"alone = "),
    Rule("how long a thread spins before it sleeps", r"threads\.c", r"SPINS", ("number", "order")),
    Rule("what is fetched early", r"", r"AHEAD|ahead|__builtin_prefetch"),
    Rule(
        "a wish for large pages",
        r"memory\.c",
        r"before = \(uintptr_t\)data %|madvise|whole =|wish_large_pages\(",
    ),
    Rule("what another processor has", r"tables\.c", r"__builtin_cpu_supports|strcmp\(isa, "),
    Rule("which kept rooms serve", r"memory\.c", r"NEAR = 2|FIRST = 16", ("number",)),
)

# A mutant as c_mutants.Mutant.key has it, and why no test can notice it.
_CPU = "gradcli/csrc/cpu/"
EQUIVALENT = {
    _CPU + "matmul/gemm.h: return stride * (int64_t)sizeof(REAL) < 2048; | product: * -> +": (
        "it decides whether tiles read a matrix where it lies or a packed copy of it, which is the "
        "same numbers in the same order"
    ),
    _CPU + "program.c: if (p->worker_bytes == 0 || threads <= p->threads) | order: <= -> <": (
        "for as many threads as before it takes the same scratch anew, in which no kernel expects "
        "to find something"
    ),
    _CPU + "memory.c: give_back(0); | number: 0 -> 1": (
        "no room that is kept is smaller than 64 KiB, so that 1 byte kept is none"
    ),
}


def rule_of(mutant: Mutant, text: str) -> str:
    """The name of the rule that leaves a mutant out, empty where none does."""
    line = text.splitlines()[mutant.line(text) - 1]
    for rule in RULES:
        if rule.operators and mutant.operator not in rule.operators:
            continue
        if re.search(rf"{rule.file}$", mutant.file) and re.search(rule.line, line):
            return rule.name
    return ""
