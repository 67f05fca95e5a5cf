"""What ranks do in the tests of sums: prints one line of JSON on rank 0."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

from gradcli import engine
from gradcli.engine import distributed
from gradcli.engine.distributed import Sum, exact, tree
from gradcli.engine.distributed.group import Group
from gradcli.errors import LostRankError

PARTS = 6
WAYS = {
    "slices": exact.slices,
    "halving": exact.halving,
    "doubling": exact.doubling,
    "chosen": exact.steps,
}


def say(line: str) -> None:
    """One write, so that lines of several ranks do not mix."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def of_node(node: tree.Run, length: int) -> engine.Tensor:
    """The sum of a node's parts, whose numbers depend on the part alone."""
    if node.high - node.low == 1:
        generator = engine.Generator().manual_seed(node.low)
        return engine.randn(length, generator=generator)
    half = tree.middle(*node)
    return of_node(tree.Run(node.low, half), length) + of_node(tree.Run(half, node.high), length)


def hashes(group: Group, lengths: list[int], ways: list[str]) -> dict[str, list[str]]:
    """For each sum, the hash that each rank has."""
    results = {}
    for way in ways:
        exact.steps = WAYS.get(way, WAYS["chosen"])
        for length in lengths:
            how = "library" if way == "library" else "exact"
            one = Sum(PARTS, length, how=how, group=group)
            for number, node in enumerate(one.nodes):
                one.source[number].copy_(of_node(node, length))
            one.sum()
            if way == "library":
                error = (one.out - of_node(tree.Run(0, PARTS), length)).abs().max().item()
                mine = f"{error < 1e-5}"
            else:
                mine = hashlib.sha256(one.out.memoryview()).hexdigest()
            every = group.all_gather(mine.encode(), "a comparison")
            results[f"{way} {length}"] = [data.decode() for data in every]
    return results


def go_on(group: Group) -> None:
    """Sums for ever, until a rank is missed: then what the command line does."""
    one = Sum(PARTS, 50_000, group=group)
    group.where = lambda: f"step {one.count:,}"
    one.source.fill_(1.0)
    group.barrier("the start")
    say("begun")
    try:
        while True:
            one.sum()
    except LostRankError as error:
        say(f"{group.rank}: {error.message}")
        time.sleep(0.2)  # for the others' sentences
        group.abort(error.exit_code)


def main() -> None:
    engine.set_num_threads(1)
    what, *arguments = sys.argv[1:]
    if what == "alone":
        group: Group = distributed.ALONE
    else:
        group = distributed.join(timeout=float(os.environ.get("LIMIT", "60")))
    if what == "go-on":
        go_on(group)
        return
    results = hashes(group, json.loads(arguments[0]), arguments[1:])
    if group.rank == 0:
        say(json.dumps({"size": group.size, "names": group.names, "hashes": results}))


if __name__ == "__main__":
    main()
