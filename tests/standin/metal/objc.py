"""Stand-in for pyobjc's module objc: what gradcli uses of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local


class error(Exception):  # noqa: N801 -- its name in pyobjc
    """What a message of Objective-C may raise."""


class _Thread(local):
    """What a thread has of its own."""

    pools = 0  # that are open


thread = _Thread()


@contextmanager
def autorelease_pool() -> Iterator[None]:
    """Objects that Metal gives away without `new` in a name go when it ends."""
    thread.pools += 1
    try:
        yield
    finally:
        thread.pools -= 1
