"""NCCL: exchanges between GPUs of several ranks, queued on the stream of their kernels.

The library is that of the package nvidia-nccl-cu13 (extra `nccl`), else the system's libnccl.so.2.
MPI carries the id by which the ranks find one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from cffi import FFI
from cuda.bindings import driver

from gradcli.engine.array import Array
from gradcli.engine.distributed import exact
from gradcli.engine.distributed.group import Group
from gradcli.engine.dtype import DType
from gradcli.errors import DeviceError, LostRankError
from gradcli.wording import quantity

NAME = "libnccl.so.2"
_TYPES = {"int32": 2, "int64": 4, "float32": 7, "float64": 8, "bfloat16": 9}
_SUM = 0
_WHAT = "the id of NCCL"

_ffi = FFI()
_ffi.cdef("""
    typedef struct { char internal[128]; } ncclUniqueId;
    typedef struct ncclComm *ncclComm_t;
    int ncclGetVersion(int *);
    int ncclGetUniqueId(ncclUniqueId *);
    int ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
    int ncclGroupStart(void);
    int ncclGroupEnd(void);
    int ncclSend(const void *, size_t, int, int, ncclComm_t, void *);
    int ncclRecv(void *, size_t, int, int, ncclComm_t, void *);
    int ncclAllGather(const void *, void *, size_t, int, ncclComm_t, void *);
    int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, void *);
    const char *ncclGetErrorString(int);
""")


class Piece(NamedTuple):
    """Numbers in a row on this rank's GPU, for another rank or from it."""

    rank: int
    array: Array


@cache
def library() -> Any:
    """The library, loaded.

    Raises:
        DeviceError: there is none.
    """
    package = find_spec("nvidia.nccl") if find_spec("nvidia") else None
    folders = (package.submodule_search_locations or []) if package else []
    own = [path for folder in folders if (path := Path(folder) / "lib" / NAME).exists()]
    try:
        return _ffi.dlopen(str(own[0]) if own else NAME)
    except OSError as error:
        raise DeviceError(
            f"nccl: {NAME} cannot be loaded ({error}); pip install 'gradcli[nccl]'"
        ) from error


def version() -> str:
    """The library's version, such as "2.28.3"."""
    number = _ffi.new("int *")
    _check(library().ncclGetVersion(number), "its version")
    major, rest = divmod(number[0], 10000)
    return f"{major}.{rest // 100}.{rest % 100}"


class Communicator:
    """The GPUs of all ranks of a group, one each; all ranks have to make it at once.

    The current device of the thread is the one it is for. It lives as long as the process: NCCL
    gives one back, even by ncclCommAbort, only after all CUDA graphs that use it are gone.
    """

    def __init__(self, group: Group) -> None:
        """Meet the others.

        Raises:
            DeviceError: there is no NCCL, or it refuses these GPUs: two ranks cannot share one.
            LostRankError: E806, a rank did not come.
        """
        self._library = library()
        self._group = group
        self._failure: LostRankError | None = None
        unique_id = _ffi.new("ncclUniqueId *")
        if group.rank == 0:
            _check(self._library.ncclGetUniqueId(unique_id), "an id")
        data = group.broadcast(bytes(_ffi.buffer(unique_id)), _WHAT)
        _ffi.memmove(unique_id, data, len(data))
        handle = _ffi.new("ncclComm_t *")
        _check(
            self._meet(handle, unique_id[0]), f"a communicator of {quantity(group.size, 'rank')}"
        )
        self._handle = handle[0]

    def _meet(self, handle: Any, unique_id: Any) -> int:
        """NCCL's status; it waits for the other ranks without a limit, and in a thread it may."""
        status: list[int] = []
        context, group = driver.cuCtxGetCurrent()[1], self._group

        def meet() -> None:
            driver.cuCtxSetCurrent(context)
            status.append(self._library.ncclCommInitRank(handle, group.size, unique_id, group.rank))

        meeting = Thread(target=meet, daemon=True)
        meeting.start()
        self.wait(lambda: not meeting.is_alive())
        return status[0]

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return once the GPU has come to the end of something; NCCL itself waits without a limit.

        Raises:
            LostRankError: E806, it has not within the group's timeout, and so never will.
        """
        if self._failure is None:
            peers = set(range(self._group.size)) - {self._group.rank}
            try:
                self._group.wait(is_done, lambda: peers, 0, exact.WHAT)
            except LostRankError as error:
                self._failure = error
                raise
        elif not is_done():
            raise self._failure

    def exchange(self, sends: Sequence[Piece], receives: Sequence[Piece]) -> Callable[[int], None]:
        """What queues these messages, all at once; those of two ranks arrive in order."""
        library, handle = self._library, self._handle
        calls = [
            (call, *_elements(piece.array), piece.rank, handle)
            for call, pieces in ((library.ncclSend, sends), (library.ncclRecv, receives))
            for piece in pieces
            if piece.array.numel
        ]

        def queue(stream: int) -> None:
            _check(library.ncclGroupStart(), "a group")
            for call, *arguments in calls:
                _check(call(*arguments, _pointer(stream)), "a message")
            _check(library.ncclGroupEnd(), "an exchange")

        return queue

    def all_gather(self, share: Array, out: Array) -> Callable[[int], None]:
        """What queues the gathering of each rank's share in `out`, in order of ranks."""
        source, count, code = _elements(share)
        target = _elements(out)[0]

        def queue(stream: int) -> None:
            status = self._library.ncclAllGather(
                source, target, count, code, self._handle, _pointer(stream)
            )
            _check(status, "an all-gather")

        return queue

    def all_reduce(self, own: Array, out: Array) -> Callable[[int], None]:
        """What queues the sum of each rank's numbers, in an order of NCCL's."""
        source, count, code = _elements(own)
        target = _elements(out)[0]

        def queue(stream: int) -> None:
            status = self._library.ncclAllReduce(
                source, target, count, code, _SUM, self._handle, _pointer(stream)
            )
            _check(status, "an all-reduce")

        return queue


def supports(dtype: DType) -> bool:
    """Whether NCCL has such numbers."""
    return dtype.name in _TYPES


def _elements(array: Array) -> tuple[Any, int, int]:
    """Where a contiguous array of a CUDA device begins, its length and NCCL's code of its type."""
    storage: Any = array.storage
    begin = _pointer(storage.handle + array.offset * array.dtype.size)
    return begin, array.numel, _TYPES[array.dtype.name]


def _pointer(address: int) -> Any:
    return _ffi.cast("void *", address)


def _check(status: int, doing: str) -> None:
    if status:
        text: Any = _ffi.string(library().ncclGetErrorString(status))
        raise DeviceError(f"nccl: {doing} failed: {text.decode()}")
