"""engine.capture: a step that runs eagerly until it is known, and is replayed from then on."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from gradcli.deprecated import renamed_keyword
from gradcli.engine import recording, table
from gradcli.engine.argument import check_arguments
from gradcli.engine.autocast import autocast
from gradcli.engine.fused import decomposed
from gradcli.engine.graph import set_grad_enabled
from gradcli.engine.precision import get_float32_matmul_precision
from gradcli.engine.program.entry import Entry, Steps, tensors_in
from gradcli.engine.program.passes import PASSES
from gradcli.engine.program.values import leaves, map_tensors, rebuild, same
from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError, GradcliError, OptionError, ShapeError

if TYPE_CHECKING:
    from gradcli.engine.program.on_device import DeviceProgram
    from gradcli.engine.program.replay import Program

MAX_PROGRAMS = 64  # of one captured step
MAX_PENDING = 8  # of one signature: recorded once, and then something was another
# What the calls of a step depend on beside its arguments.
_REMEMBERING, _DECOMPOSING = set_grad_enabled.variable, decomposed.variable
_AUTOCASTING = autocast.variable
_AS_IT_IS = object()  # in place of a result: the step is to be run


class Learning(NamedTuple):
    """How many steps were recorded, and the seconds that they and their programs took."""

    steps: int
    seconds: float


class Captured:
    """A step that is replayed without Python once it has been seen twice; made by `capture`.

    For each signature (shapes and types of the tensors, other arguments by value) the step runs
    eagerly twice while its kernel calls are recorded. If both times are the same calls, and a
    replay gives the same bits, later calls replay. Otherwise the step stays eager, and
    `fallback_reason` says why.

    Threads take turns: a program has one arena, and one buffer for each argument and result. A step
    that stays eager runs in all of them at once.

    Attributes:
        learning: what it took so far to learn its programs.
    """

    @renamed_keyword("on_refusal", "on_fallback")
    def __init__(
        self,
        step: Callable[..., object],
        passes: Iterable[str],
        on_fallback: Callable[[str], None],
        eager: bool,
    ) -> None:
        self._step = step
        self._eager = eager
        self._passes = tuple(passes)
        self._on_fallback = on_fallback
        self._entries: dict[Any, list[Entry]] = {}
        self._overrun = False
        self._unused = 0  # recordings that never became a program
        self._broken = ""  # what the last of them found changed
        self._state: object = None
        self.learning = Learning(0, 0.0)
        self._turn = RLock()
        self._inside = False  # whoever has the turn is between looking for an entry and a result
        _all.add(self)

    def begin_in_child(self) -> None:
        """No other thread lives on in a forked child: nobody has the turn."""
        self._turn, self._inside = RLock(), False

    @property
    def fallback_reason(self) -> str:
        """Why a signature stays eager; empty when none does."""
        refusals = (e.refusal for entries in self._entries.values() for e in entries if e.refusal)
        return next(refusals, "")

    @property
    def why_not(self) -> str:
        """The old name of `fallback_reason`."""
        text = "Captured.why_not is now fallback_reason"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self.fallback_reason

    @property
    def programs(self) -> list[Program | DeviceProgram]:
        """The programs made so far, one for each signature."""
        return [e.program for list_ in self._entries.values() for e in list_ if e.program]

    def __call__(self, *args: Any) -> Any:
        """What the step gives; its tensors are the caller's own and have no history.

        (Inside another captured step that is being recorded they have the step's history.)
        """
        result = self._led(args)
        return self._eagerly(args) if result is _AS_IT_IS else result

    def scan(self, *args: object) -> Any:
        """The step for each row of the tensors given; what comes back is stacked in the same way.

        The same as a loop over the rows, without Python in between (jax calls it lax.scan).
        """
        result = self.steps(*args)
        if result.error is not None:
            raise result.error
        return result.outputs

    def steps(self, *args: object) -> Steps:
        """As `scan`, but a value that a kernel refused ends the steps instead of raising."""
        tensors = tensors_in(args)
        count = _count(tensors)
        results: list[Any] = []
        for i in range(count):
            row = [a[i] if isinstance(a, Tensor) else a for a in args]
            try:
                result = self._led(row, tensors, i)
                if isinstance(result, Steps):
                    return _joined(results, result)
                results.append(self._eagerly(row) if result is _AS_IT_IS else result)
            except CaptureError:
                raise
            except GradcliError as error:
                return _joined(results, Steps(None, 0, error))
        return _joined(results, Steps(None, 0, None))

    # One signature.

    def new_entry(self, args: Sequence[object]) -> Entry:
        """What is known of these arguments' signature: nothing yet."""
        return Entry.of(args)

    def _eagerly(self, args: Sequence[object]) -> Any:
        """What the step gives, copied: it may be memory that the next step changes."""
        inside = recording.current() is not None  # its results are values of the step around it
        return map_tensors(self._step(*args), lambda t: (t if inside else t.detach()).clone())

    def _led(self, args: Sequence[object], tensors: Sequence[Tensor] = (), first: int = 0) -> Any:
        """What a replay or a recording gives, in the turn of this thread; or `_AS_IT_IS`.

        A program makes a step for each row of `tensors` from `first` on, where they are given.
        """
        if self._eager or recording.current() is not None:
            return _AS_IT_IS  # inside another recording its calls belong to the step around it
        with self._turn:
            if self._inside:  # a signal handler, or whoever is told of a refusal, calls it again
                return _AS_IT_IS
            self._inside = True
            try:
                entry = self._entry(args)
                if entry.program is None:
                    return self._record(entry, args)
                if tensors:
                    return entry.steps(entry.program, tensors, first)
                return entry.one_step(entry.program, args)
            finally:
                self._inside = False

    def _entry(self, args: Sequence[object]) -> Entry:
        key = (
            _REMEMBERING.get(),
            _DECOMPOSING.get(),
            _AUTOCASTING.get(),
            get_float32_matmul_precision(),
            *[_signature(a) for a in args],
        )
        if self._state is not recording.state():
            self._let_go()
        entries = self._entries.setdefault(key, [])
        for entry in entries:
            if entry.holds():
                return entry
        if sum(map(len, self._entries.values())) + self._unused > MAX_PROGRAMS:
            return self._one_too_many(key)
        pending = [entry for entry in entries if entry.pending]
        if len(pending) >= MAX_PENDING:
            self._drop(entries, pending[:1])
        entries.append(self.new_entry(args))
        return entries[-1]

    def _let_go(self) -> None:
        """Keep no program, and none of the memory, of tensors and modules that were replaced."""
        self._state = recording.state()
        for entries in self._entries.values():
            self._drop(entries, [entry for entry in entries if entry.outlived()])

    def _drop(self, entries: list[Entry], outdated: Sequence[Entry]) -> None:
        for entry in outdated:
            self._unused += entry.pending
            self._broken = entry.broken or self._broken
            entries.remove(entry)

    def _one_too_many(self, key: object) -> Entry:
        """An entry that stays eager, so that what never repeats costs no memory."""
        entries = self._entries[key]
        broken = [entry.broken for entry in entries if entry.broken]
        if self._unused > MAX_PROGRAMS // 2:
            broken.append(self._broken)
        if not entries:
            del self._entries[key]
        if not self._overrun:
            self._overrun = True
            self._on_fallback(
                f"the step is not captured for more than {MAX_PROGRAMS} states of its modules: "
                f"{broken[0]} changes again and again; change tensors in place, and keep numbers "
                "that change in tensors"
                if broken
                else f"the step is not captured for more than {MAX_PROGRAMS} kinds of arguments; "
                "pass numbers that change as tensors"
            )
        return Entry([], refusal="too many kinds of arguments")

    def _record(self, entry: Entry, args: Sequence[object]) -> Any:
        if entry.refusal:
            return _AS_IT_IS
        began = time.perf_counter()
        try:
            returned, reason = entry.record(self._step, args, self._passes)
        except CaptureError as error:
            self._refuse(entry, error.message)
            return _AS_IT_IS
        finally:
            steps, seconds = self.learning
            self.learning = Learning(steps + 1, seconds + time.perf_counter() - began)
        if reason:
            self._refuse(entry, reason)
        return returned

    def _refuse(self, entry: Entry, reason: str) -> None:
        entry.refuse(reason)
        self._on_fallback(reason)


_all: WeakSet[Captured] = WeakSet()


def _after_fork() -> None:
    for captured in _all:
        captured.begin_in_child()


os.register_at_fork(after_in_child=_after_fork)


@renamed_keyword("on_refusal", "on_fallback")
@check_arguments
def capture(
    step: Callable[..., Any],
    *,
    passes: Iterable[str] = tuple(PASSES),
    on_fallback: Callable[[str], None] | None = None,
    eager: bool = False,
) -> Captured:
    """A function that replays what `step` does, without Python, once it has seen it twice.

    The step's arguments are tensors and plain values; what it returns are tensors, also inside
    tuples, lists and dicts. Parameters, optimizer state and everything else that it reads without
    being given must be tensors that are changed in place. Where a step cannot be captured, it
    runs eagerly as before, and `on_fallback` is told why (by default with a warning). With `eager`
    nothing is captured at all.
    """
    names = tuple(passes)
    for name in names:
        if not isinstance(name, str) or name not in PASSES:
            raise OptionError(f"capture: no pass {name!r:.60}; passes are {', '.join(PASSES)}")
    return Captured(step, names, on_fallback or _warn, eager)


def _warn(reason: str) -> None:
    warnings.warn(reason, stacklevel=2)


def _signature(value: object) -> Any:
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device
    if isinstance(value, float):
        return float, repr(value)  # 0.0 and -0.0 are two, NaN and NaN are one
    if value is None or isinstance(value, (bool, int, str)):
        return type(value), value
    raise OptionError(f"capture: a step takes tensors and plain values, got {type(value).__name__}")


def _count(tensors: Sequence[Tensor]) -> int:
    lengths = {t.shape[0] if t.shape else 0 for t in tensors}
    if len(lengths) != 1:
        raise ShapeError(f"scan: needs tensors with one number of rows, got {sorted(lengths)}")
    count = lengths.pop()
    if count == 0:
        raise ShapeError("scan: needs tensors with at least one row, got none; give one a step")
    return count


def _joined(first: Sequence[object], rest: Steps) -> Steps:
    """Results of single steps, and those of the steps after them, stacked."""
    if not first:
        return rest
    patterns, rows = zip(*map(leaves, first), strict=True)
    for row, pattern in enumerate(patterns):
        if not same(pattern, patterns[0]):
            raise CaptureError(
                f"scan: the step returned {patterns[0]!r:.60} for row 0 and {pattern!r:.60} "
                f"for row {row}; return what changes as a tensor"
            )
    later = leaves(rest.outputs)[1] if rest.outputs is not None else []
    tensors = []
    for i, column in enumerate(zip(*rows, strict=True)):
        parts = [t.reshape(1, *t.shape) for t in column]
        tensors.append(table.cat([*parts, later[i]] if later else parts))
    return Steps(rebuild(patterns[0], tensors), len(first) + rest.done, rest.error)
