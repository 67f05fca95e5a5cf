"""How many bytes tensors hold at once, at most: of memory that is there, and that is imagined."""

from __future__ import annotations

from types import TracebackType

from gradcli.engine.device import cpu, meta


class Peak:
    """The most bytes in use at once inside a `with` block, and after the latest `restart`.

    What was in use before the block is not counted. It costs a look at each block of memory that
    Python makes; what C takes for the threads of a program shows at the next one.
    """

    def __init__(self) -> None:
        self.most = 0
        self._before = 0

    def __enter__(self) -> Peak:
        self._before = _in_use()
        cpu.looking.append(self.look)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cpu.looking.remove(self.look)

    @property
    def now(self) -> int:
        """Bytes in use."""
        return _in_use() - self._before

    def look(self) -> None:
        """Take note of what is in use now."""
        self.most = max(self.most, self.now)

    def restart(self) -> int:
        """The most so far; from now on count anew."""
        self.look()
        most, self.most = self.most, self.now
        return most


def _in_use() -> int:
    return cpu.allocated() + meta.DEVICE.allocated
