"""The worker processes of a loader: started by spawn, listened to by a thread each."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from gradcli.data.loader import wire, worker
from gradcli.data.loader.worker import WorkerArguments
from gradcli.errors import WorkerError
from gradcli.wording import quantity

_EXIT = ("gone", -1, -1)
_PATIENCE = 1.0  # seconds for a worker to end by itself


class Crew:
    """Workers by number. Tasks go to one of them, and its answers come back in order."""

    def __init__(self, works: Sequence[WorkerArguments]) -> None:
        self._members: list[_Member] = []
        try:
            with _no_interrupt():
                for work in works:
                    self._members.append(_Member(work.id))
            for member, work in zip(self._members, works, strict=True):
                member.take(work)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._members)

    def tell(self, number: int, task: object) -> None:
        """Give a worker a task; one that has died is noticed when its answer is wanted."""
        with contextlib.suppress(OSError):
            self._members[number].tasks.send(task)

    def answer(self, number: int, pass_number: int, timeout: float) -> tuple[str, Any]:
        """The next answer of a worker in pass `pass_number`: "batch" or "end", and the value."""
        member = self._members[number]
        while True:
            try:
                (kind, of, _), value = member.inbox.get(timeout=timeout or None)
            except queue.Empty:
                raise WorkerError(
                    f"DataLoader: worker {number} gave no batch within "
                    f"{quantity(timeout, 'second', form='g')}"
                ) from None
            if kind == "gone":
                raise WorkerError(f"DataLoader: worker {number} {member.ending()}", notes=_GUARD)
            if kind == "failed" and of in (pass_number, -1):
                what, trace = value
                raise WorkerError(
                    f"DataLoader: worker {number} {what}",
                    notes=tuple(trace.rstrip().splitlines()),
                )
            if of == pass_number:  # drop what is left of an earlier pass
                return kind, value

    def close(self) -> None:
        """End all workers: asked first, then made to."""
        for member in self._members:
            with contextlib.suppress(OSError):
                member.tasks.send(None)
            member.tasks.close()
        for member in self._members:
            member.end()
        self._members.clear()


_GUARD = (
    "what it wrote stands above; a script that uses workers needs "
    "if __name__ == '__main__': around what starts them",
)


class _Member:
    """One process, the pipe for its tasks, and what came back."""

    def __init__(self, number: int) -> None:
        context = get_context("spawn")
        theirs, self.tasks = context.Pipe(duplex=False)
        results, sending = context.Pipe(duplex=False)
        self.process = context.Process(
            target=worker.main, args=(theirs, sending), daemon=True, name=f"loader-{number}"
        )
        try:
            self.process.start()
        finally:
            theirs.close()
            sending.close()
        self.inbox: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._listener = threading.Thread(target=_listen, args=(results, self.inbox), daemon=True)
        self._listener.start()

    def take(self, work: WorkerArguments) -> None:
        """Tell the worker what its work is; one that has died is noticed when an answer is due.

        Not as an argument of the process: its start would wait for ever for one that died.
        """
        try:
            self.tasks.send(work)
        except OSError:
            return
        except Exception as error:  # a dataset's own way to be sent may fail in any way
            raise WorkerError(
                f"DataLoader: the dataset cannot be sent to a worker: {error}",
                notes=("define its class and collate_fn at the top of a module",),
            ) from error

    def ending(self) -> str:
        """A sentence on how the process ended."""
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def end(self) -> None:
        """See the process end."""
        for make in (None, self.process.terminate, self.process.kill):
            if make is not None:
                make()
            self.process.join(_PATIENCE)
            if self.process.exitcode is not None:
                break
        self._listener.join(_PATIENCE)
        self.process.close()


def _listen(results: Connection, inbox: queue.SimpleQueue[tuple[Any, Any]]) -> None:
    """Take in what a worker sends until it is gone, so that it never waits for the trainer."""
    with results:
        try:
            while True:
                inbox.put(wire.receive(results))
        except (EOFError, OSError):
            inbox.put((_EXIT, None))


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C waits meanwhile: a starting worker inherits that, until it ignores the signal."""
    resource_tracker.ensure_running()  # the first start would do it, and let Ctrl-C in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
