from __future__ import annotations

import threading

import pytest

from gradcli.data.background import Background
from gradcli.errors import DataError


def test_the_caller_goes_on_and_gets_the_result_later() -> None:
    go = threading.Event()

    def work() -> int:
        assert go.wait(10)
        return threading.get_ident()

    begun = Background(work)
    go.set()  # would never happen if the call ran in the caller's thread
    assert begun.result() != threading.get_ident()


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    def work() -> None:
        raise DataError("damaged")

    begun = Background(work)
    for _ in range(2):
        with pytest.raises(DataError, match="damaged"):
            begun.result()
