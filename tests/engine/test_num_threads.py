"""set_num_threads, get_num_threads: the same bits with any number."""

import pytest

from gradcli import engine
from gradcli.errors import OptionError


def test_threads_are_set_and_told_and_change_no_bit() -> None:
    before = engine.get_num_threads()
    x = engine.randn(300, 300)
    try:
        engine.set_num_threads(1)
        assert engine.get_num_threads() == 1
        alone = (x @ x).tolist()
        engine.set_num_threads(2)
        assert engine.get_num_threads() == 2
        assert (x @ x).tolist() == alone
    finally:
        engine.set_num_threads(before)
    with pytest.raises(OptionError, match="threads must be a whole number >= 1, got 0"):
        engine.set_num_threads(0)
