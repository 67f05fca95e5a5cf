"""What many noisy times say: the median, the 10th percentile, and which of them count."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

ENOUGH = 3  # good chunks; with fewer, all of them count and the row is called noisy
CROWDED = 0.05


@dataclass(frozen=True)
class Chunk:
    """One measurement: time of a step, and why it does not count; empty where it does.

    `waited`: how long its threads were ready without a processor, as a share of the time.
    """

    seconds: float
    fault: str = ""
    waited: float = 0.0


@dataclass(frozen=True)
class Summary:
    """A competitor's time of a step, and on how many chunks it rests."""

    ms: float
    p10: float
    kept: int
    dropped: dict[str, int]
    noisy: bool

    def as_json(self) -> dict[str, object]:
        """As it stands in a result file."""
        return asdict(self)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of the others lie, between two of them where it falls so."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def judged(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks, those `crowded` by other processes marked so.

    Some libraries run more threads than there are processors, which wait for each other: what
    counts is the waiting beyond the least that this competitor was seen to do.
    """
    limit = min((c.waited for c in chunks), default=0.0) + CROWDED
    return [replace(c, fault="crowded") if not c.fault and c.waited > limit else c for c in chunks]


def summary(measured: Sequence[Chunk]) -> Summary:
    """Median and 10th percentile of the good chunks, in milliseconds."""
    chunks = judged(measured)
    good = [c.seconds for c in chunks if not c.fault]
    noisy = len(good) < min(ENOUGH, len(chunks))
    counted = [c.seconds for c in chunks] if noisy else good
    return Summary(
        ms=statistics.median(counted) * 1e3,
        p10=percentile(counted, 10) * 1e3,
        kept=len(good),
        dropped=dict(Counter(c.fault for c in chunks if c.fault)),
        noisy=noisy,
    )


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the median, from the order of the values alone (binomial)."""
    ordered, n = sorted(values), len(values)
    outside = 0  # how many values are cut off at each end
    tail = 1 / 2**n
    while tail + math.comb(n, outside + 1) / 2**n <= 0.025:
        outside += 1
        tail += math.comb(n, outside) / 2**n
    return ordered[outside], ordered[n - 1 - outside]


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of the product."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


def furthest(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The largest relative difference of two series; infinite where one is not finite or short."""
    if len(losses) != len(reference) or not all(map(math.isfinite, losses)):
        return math.inf
    pairs = zip(losses, reference, strict=True)
    return max((abs(a - b) / max(abs(b), 1e-12) for a, b in pairs), default=0.0)
