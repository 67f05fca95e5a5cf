"""What the ranks of an Accelerator exchange beside gradients: weights, rows and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any
from zlib import crc32

from gradcli import engine
from gradcli.data.loader import DataLoader
from gradcli.engine import Tensor, nn, optim
from gradcli.engine.distributed.group import Group, other_rank
from gradcli.engine.distributed.tensors import all_gather
from gradcli.errors import CheckpointError, GradcliError, OptionError
from gradcli.wording import quantity


def agree(group: Group, what: str, text: str) -> None:
    """Raise E804 on all ranks if the `text` of one differs from rank 0's."""
    texts = group.gather_values(text, what)
    rank = other_rank(texts)
    if rank:
        raise OptionError(
            f"{what}: {group.names[rank]} has {texts[rank]}; rank 0 has {texts[0]}", code="E804"
        )


def describe(item: Any) -> str:
    """Describe a module, optimizer, scheduler or loader; the text differs where two of them do."""
    if isinstance(item, nn.Module):
        tensors = item.state_dict()
        words = f"of {quantity(len(tensors), 'tensor')}"
        text = str([(name, t.shape, t.dtype.name) for name, t in tensors.items()])
    elif isinstance(item, DataLoader):
        size = len(item.dataset) if hasattr(item.dataset, "__len__") else 0
        words = f"of {quantity(size, 'sample')} in batches of {item.batch_size}"
        text = f"{words}, seed {item.state_dict()['seed']}"
    else:
        groups = (item if isinstance(item, optim.Optimizer) else item.optimizer).param_groups
        words = f"of {quantity(len(groups), 'group')}"
        text = str([{k: v for k, v in group.items() if k != "params"} for group in groups])
    return f"{type(item).__name__} {words} ({crc32(text.encode()):08x})"


def rows_of_all(group: Group, rows: Tensor) -> Tensor:
    """The rows of all ranks, those of rank 0 first; ranks may have different numbers of them."""
    what, rest = "gather_for_metrics", rows.shape[1:]
    agree(group, what, f"rows of {rows.dtype.name} {rest}")
    return rows.detach() if group.size == 1 else engine.cat(all_gather(group, rows))


def from_main(group: Group, what: str, action: Callable[[], bytes]) -> bytes:
    """The result of rank 0's action, on all ranks; if it raises a GradcliError, all raise it."""
    data, error = b"", None
    if group.rank == 0:
        try:
            data = action()
        except GradcliError as raised:
            error = raised
    fault = [] if error is None else [error.code, error.message, *error.notes]
    fault = json.loads(group.broadcast(json.dumps(fault).encode(), what))
    if error is not None:
        raise error
    if fault:
        code, message, *notes = fault
        raise CheckpointError(message, code=code, notes=tuple(notes))
    return group.broadcast(data, what)


def end_all_with_one(group: Group) -> None:
    """If this rank ends by an exception, print its name and abort the ranks that wait for it."""
    earlier = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(f"{group.names[group.rank]}:\n")
        earlier(kind, error, trace)
        sys.stderr.flush()
        group.abort(error.exit_code if isinstance(error, GradcliError) else 1)

    sys.excepthook = end
