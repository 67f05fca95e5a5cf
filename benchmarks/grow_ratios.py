"""What the race of growing models says: where torch is ahead, and whether time outgrows work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.grow_cases import AXES
from benchmarks.op_ratios import ratios
from benchmarks.verdict import Verdict, at_least, at_most

AHEAD, OUTGROWN = 1.0, 1.15  # torch's time over ours; growth of time over that of work, at the end


def times(sizes: Mapping[str, Any], peer: str) -> list[tuple[int, float]]:
    """(size, milliseconds) of a competitor."""
    rows = ((int(size), rows.get(peer, {})) for size, rows in sizes.items())
    return [(size, row["ms"]) for size, row in rows if "ms" in row]


def outgrowth(axis: str, sizes: Mapping[str, Any]) -> float | None:
    """Of the last two sizes: how much more time, over how much more work."""
    *_, (size, ms), (last_size, last_ms) = [(0, 0.0), (0, 0.0), *times(sizes, "gradcli")]
    if not size:
        return None
    work = AXES[axis].work
    return last_ms / ms / (work(last_size) / work(size))


def of_grow(result: Mapping[str, Any]) -> list[Verdict]:
    """The place where torch is nearest, and on each axis how time grows."""
    every = {
        f"{axis} {size}": ratio
        for axis, sizes in result["axes"].items()
        for size, ratio in ratios(sizes).items()
    }
    worst = min(every, key=lambda name: every[name], default=None)
    what = "a step, times as fast as torch's" + (f", the slowest ({worst})" if worst else "")
    verdicts = [at_least(what, every[worst] if worst else None, AHEAD)]
    for axis, sizes in result["axes"].items():
        what = f"{axis}: growth of time over growth of work"
        verdicts.append(at_most(what, outgrowth(axis, sizes), OUTGROWN))
    return verdicts


HEAD = ("axis", "sizes", "ms", "torch, ms", "torch's time over ours", "growth of time over work")


def lines(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each axis."""
    for axis, sizes in result["axes"].items():
        ends = [times(sizes, peer) for peer in ("gradcli", "torch")]
        spans = [f"{rows[0][1]:.3g} to {rows[-1][1]:.3g}" if rows else "-" for rows in ends]
        every, more = list(ratios(sizes).values()), outgrowth(axis, sizes)
        ratio = f"{min(every):.2f} to {max(every):.2f}" if every else "-"
        names = [str(size) for size, _ in ends[0] or ends[1]]
        among = f"{names[0]} to {names[-1]}" if names else "-"
        growth = "-" if more is None else f"{more:.2f}"
        yield (f"{axis}: {AXES[axis].title}", among, *spans, ratio, growth)


# -- plots -----------------------------------------------------------------------------------------

_WIDE, _HIGH, _EDGE = 300, 220, 40
_COLORS = {"gradcli": "#0969da", "torch": "#cf5c1f"}


def plots(result: Mapping[str, Any]) -> str:
    """Time against size on logarithmic scales, an SVG with a panel for each axis."""
    panels = [_panel(i, axis, sizes) for i, (axis, sizes) in enumerate(result["axes"].items())]
    wide, high = 3 * _WIDE, math.ceil(len(panels) / 3) * _HIGH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{wide}" height="{high}" fill="white"/>\n' + "".join(panels) + "</svg>\n"
    )


def _panel(number: int, axis: str, sizes: Mapping[str, Any]) -> str:
    edge, top = number % 3 * _WIDE, number // 3 * _HIGH
    rows = {peer: times(sizes, peer) for peer in _COLORS}
    points = [point for some in rows.values() for point in some]
    if not points:
        return ""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    low_x, high_x, low_y, high_y = min(xs), max(xs) + 1e-9, min(ys), max(ys) + 1e-9

    def place(size: float, ms: float) -> tuple[float, float]:
        across = (math.log(size) - low_x) / (high_x - low_x)
        up = (math.log(ms) - low_y) / (high_y - low_y)
        return (
            round(edge + _EDGE + across * (_WIDE - 2 * _EDGE), 1),
            round(top + _HIGH - _EDGE - up * (_HIGH - 2 * _EDGE), 1),
        )

    parts = [f'<text x="{edge + _EDGE}" y="{top + 18}" font-weight="bold">{axis}, ms</text>\n']
    for nth, (peer, color) in enumerate(_COLORS.items()):
        corners = [place(*row) for row in rows[peer]]
        path = " ".join(f"{x},{y}" for x, y in corners)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>\n')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>\n' for x, y in corners]
        at = edge + _WIDE - _EDGE
        parts.append(
            f'<text x="{at}" y="{top + 18 + 13 * nth}" fill="{color}" text-anchor="end">{peer}'
            "</text>\n"
        )
    for size in sorted({size for size, _ in points}):
        x, below = place(size, points[0][1])[0], top + _HIGH - _EDGE + 16
        parts.append(f'<text x="{x}" y="{below}" text-anchor="middle">{size}</text>\n')
    for ms in (min(ms for _, ms in points), max(ms for _, ms in points)):
        _, y = place(points[0][0], ms)
        parts.append(f'<text x="{edge + _EDGE - 6}" y="{y}" text-anchor="end">{ms:.2g}</text>\n')
    return "".join(parts)
