"""A captured step rehearsed on the meta device: nothing is computed, and its memory is known.

`Rehearsed` does what `Captured` does on the CPU, and takes the memory that it takes, in the same
order: the eager steps that are recorded, the arena and the threads' scratch of the program, the
rows of what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.engine.array import Array, empty
from gradcli.engine.device import cpu, meta, scope
from gradcli.engine.program.capture import Captured
from gradcli.engine.program.entry import Entry
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.planned import ProgramPlan, Rehearsal
from gradcli.errors import CaptureError, DeviceError

if TYPE_CHECKING:
    from gradcli.engine.device.cpu import Storage
    from gradcli.engine.graph import Leaf
    from gradcli.engine.program.record import Recording


class Rehearsed(Captured):
    """A step on the meta device, taken for one that is captured on the CPU.

    Numbers that the step itself reads are refused, as `capture` refuses them; there are none.
    """

    def __init__(
        self,
        step: Callable[..., object],
        *,
        passes: Iterable[str] = tuple(PASSES),
        on_fallback: Callable[[str], None],
        eager: bool = False,
        on_replay: Callable[[], None] = lambda: None,
        copying: Callable[[int], None] = lambda nbytes: None,
        threads: int | None = None,
    ) -> None:
        """Make nothing yet.

        So many `threads` have scratch of their own: all of the CPU's, none of a GPU's.
        `on_replay` is called before each replay. `copying` is called when a program proves itself,
        with the bytes that Python holds beside all that is counted.
        """
        reasons: list[str] = []

        def refuse(reason: str) -> None:
            reasons.append(reason)
            on_fallback(reason)

        super().__init__(_imagined(step, reasons), tuple(passes), refuse, eager)
        self._on_replay, self._copying = on_replay, copying
        self._threads = cpu.threads() if threads is None else threads

    def new_entry(self, args: Sequence[object]) -> Entry:
        """One that plans its program, and imagines it."""
        entry = RehearsedEntry.of(args)
        entry.on_replay, entry.copying, entry.threads = (
            self._on_replay,
            self._copying,
            self._threads,
        )
        return entry


def _imagined(step: Callable[..., object], reasons: Sequence[str]) -> Callable[..., object]:
    """The step, whose memory is imagined; what it cannot do is told with the first reason."""

    def imagined(*args: object) -> object:
        try:
            with meta.blank(False), scope.on(meta.DEVICE):
                return step(*args)
        except DeviceError as error:
            raise DeviceError(reasons[0] if reasons else error.message) from error

    return imagined


class RehearsedEntry(Entry):
    """One signature of such a step."""

    recorder = Rehearsal
    on_replay: Callable[[], None]
    copying: Callable[[int], None]
    threads: int

    def _judge(
        self, pattern: Any, recorded: Recording, args: Sequence[object], passes: Sequence[str]
    ) -> str:
        with meta.blank():  # constants are compared, and there are no numbers
            return super()._judge(pattern, recorded, args, passes)

    def _compile(self, recorded: Recording, passes: Sequence[str]) -> str:
        """Plan the program, and imagine its memory."""
        assert isinstance(recorded, Rehearsal)
        self.copying(2 * recorded.copied_bytes)  # as memory was before the step, and after it
        try:
            program_plan = ProgramPlan(optimized(recorded.calls, passes))
        except CaptureError as error:
            return error.message
        program = RehearsedProgram(program_plan, recorded, self.on_replay, self.threads)
        self.program = program  # type: ignore[assignment]
        return ""


class RehearsedProgram:
    """The memory of a program, and of what its replays give.

    Attributes:
        arena_bytes: memory of its intermediates.
        grads: the gradients that a replay leaves.
    """

    def __init__(
        self,
        program_plan: ProgramPlan,
        recording: Recording,
        on_replay: Callable[[], None],
        threads: int,
    ) -> None:
        self._on_replay = on_replay
        self.grads: Mapping[Leaf, Array | None] = recording.grads
        self.arena_bytes = program_plan.layout.nbytes
        self._made_of = program_plan, recording  # they hold what the calls read and write
        self._memory: list[Storage] = [meta.DEVICE.allocate(self.arena_bytes)]
        first = 0
        for section in program_plan.sections:
            plans = program_plan.plans[first : first + len(section.calls)]
            first += len(section.calls) + (section.function is not None)
            most = max((plan.worker_bytes for plan in plans), default=0)
            if most and threads:
                self._memory.append(meta.DEVICE.allocate(most * threads))

    def one_step(
        self, inputs: Sequence[Array], arguments: Sequence[Array], outputs: Sequence[Array]
    ) -> list[Array]:
        """What one step gives."""
        self._replay()
        with scope.on(meta.DEVICE):
            return [empty(array.shape, array.dtype) for array in outputs]

    def steps(
        self,
        inputs: Sequence[Array],
        arguments: Sequence[Array],
        outputs: Sequence[Array],
        count: int,
    ) -> tuple[list[Array], int, None]:
        """What so many steps give, a row for each."""
        self._replay()
        with scope.on(meta.DEVICE):
            rows = [empty((count, *array.shape), array.dtype) for array in outputs]
        return rows, count, None

    def _replay(self) -> None:
        self._on_replay()
        for leaf, grad in self.grads.items():
            leaf.grad = grad
