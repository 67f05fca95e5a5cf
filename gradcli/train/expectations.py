"""Whether a training reached the figures of `expect:`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.errors import ExpectationError

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Result


def missed(job: Job, result: Result) -> list[str]:
    """The expectations that the figures do not meet; none are due before the end."""
    if result.status != "finished":
        return []
    return [
        f"expected {expectation}, got {result.metrics.get(expectation.metric, math.nan):g}"
        for expectation in job.expect
        if not expectation.holds(result.metrics.get(expectation.metric, math.nan))
    ]


def check_expectations(job: Job, result: Result) -> None:
    """Raise when a finished run missed a figure of `expect:`; everything is saved by then."""
    failures = missed(job, result)
    if failures:
        raise ExpectationError("; ".join(failures))
