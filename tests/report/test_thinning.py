"""Long curves become short ones that keep their extremes."""

from __future__ import annotations

import random

from gradcli.report.thinning import BUFFER, Curve, Points, extremes


def test_a_short_curve_stays_as_it_is() -> None:
    points = Points([1, 2, 5], [3.0, 1.0, 2.0])
    assert extremes(points, 3) == points


def test_a_long_curve_keeps_ends_and_extremes() -> None:
    draw = random.Random(0)
    steps = list(range(10, 300_010))
    values = [draw.uniform(-1, 1) for _ in steps]
    values[12_345], values[200_000] = 50.0, -50.0
    curve = Curve()
    for at in range(0, len(steps), 5000):
        curve.extend(steps[at : at + 5000], values[at : at + 5000])
    points = curve.points(2000)
    assert len(points.steps) <= 2000 and points.steps == sorted(set(points.steps))
    drawn = dict(zip(points.steps, points.values, strict=True))
    assert drawn[12_355] == 50.0 and drawn[200_010] == -50.0
    assert points.steps[0] == 10 and points.steps[-1] == 300_009
    assert all(values[step - 10] == value for step, value in drawn.items())
    parts = [sum(at // 30_000 == part for at in points.steps) for part in range(10)]
    assert min(parts) > 150  # early steps are drawn as closely as late ones
    assert (curve.count, curve.last) == (300_000, (300_009, values[-1]))
    assert len(curve.points(BUFFER).steps) > 2000


def test_the_smooth_course_is_of_all_values() -> None:
    curve = Curve()
    for step in range(1, 100_001):
        curve.extend([step], [10.0 if step % 10 == 0 else 0.0])
    smooth = curve.smooth()
    assert len(smooth.steps) <= 600
    assert all(abs(value - 1) < 0.35 for value in smooth.values[20:])
