"""Stand-in for pyobjc's module objc: what gradcli uses of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class error(Exception):  # noqa: N801 -- its name in pyobjc
    """What a message of Objective-C may raise."""


pools = 0  # that are open


@contextmanager
def autorelease_pool() -> Iterator[None]:
    """Objects that Metal gives away without `new` in a name go when it ends."""
    global pools
    pools += 1
    try:
        yield
    finally:
        pools -= 1
