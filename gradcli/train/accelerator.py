"""Accelerator: your own training loop on any number of ranks, by MyTorch's names.

On one rank it changes nothing: the loop computes the same bits as without it. N ranks compute,
bit for bit, what one rank computes that accumulates N times as many micro-batches.
"""

from __future__ import annotations

import builtins
import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

from gradcli import engine
from gradcli.data.loader import DataLoader
from gradcli.devices import GPUS
from gradcli.engine import Tensor, distributed, nn, optim
from gradcli.engine.constructor import checked_constructor
from gradcli.engine.distributed.group import Group
from gradcli.engine.kind import Count, NotNegative, Positive, format_value
from gradcli.engine.optim.lr_scheduler import LRScheduler
from gradcli.errors import NumericsError, OptionError, OptionTypeError
from gradcli.train import saved_state
from gradcli.train.between_ranks import agree, describe, end_all_with_one, rows_of_all
from gradcli.train.launcher import find_launch, join_ranks
from gradcli.train.part_gradients import PartGradients
from gradcli.train.rank_loader import Passes, RankLoader
from gradcli.train.ranks import take_from_first
from gradcli.train.running_statistics import RunningStatistics

_PAIR = struct.Struct("<dd")


class StepScheduler:
    """A scheduler that steps once an update, not once a micro-batch; else as the wrapped one."""

    def __init__(self, scheduler: LRScheduler, accelerator: Accelerator) -> None:
        self.scheduler = scheduler
        self._accelerator = accelerator

    def step(self, *figures: Any) -> None:
        """Step the scheduler, if an update has just been made."""
        if self._accelerator.sync_grad:
            self.scheduler.step(*figures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scheduler, name)


@checked_constructor
class Accelerator:
    """Divides a loop's batches among the ranks of the launcher, and adds up their gradients.

    An update has `gradient_accumulation_steps` micro-batches of each rank. Their gradients are
    added once, after the last of them, along a tree that depends only on their number. Between
    micro-batches `.grad` is None, so the loop may call `optimizer.step()` and `zero_grad()` in
    every round. The loss is the mean over its batch.

    Args:
        gradient_accumulation_steps: micro-batches of each rank in an update.
        device: where models and batches lie; "cuda" is the GPU with this rank's number on its host.
        nonfinite: what a loss that is NaN or infinite on any rank does: "raise" an error on all
            ranks, or "skip" the update on all.
        timeout: seconds to wait for another rank before the error E806.
        group: the ranks; by default those of the launcher.

    Attributes:
        device: where models and batches lie.
        updates: how many there were so far.
        skipped: how many of them were left out because a loss was not finite.
        grad_norm: the norm of all gradients at the last `clip_grad_norm_`; None before.
    """

    def __init__(
        self,
        gradient_accumulation_steps: Count = 1,
        *,
        device: str = "cpu",
        nonfinite: Literal["raise", "skip"] = "raise",
        timeout: Positive = 300.0,
        group: Group | None = None,
    ) -> None:
        self.group = _ranks(timeout) if group is None else group
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.nonfinite = nonfinite
        self.device = _device_of_rank(device, self.group)
        self.updates = 0
        self.skipped = 0
        self.grad_norm: float | None = None
        self.models: list[nn.Module] = []
        self.optimizers: list[optim.Optimizer] = []
        self.schedulers: list[LRScheduler] = []
        self.loaders: list[RankLoader] = []
        self.passes = Passes(self._pass_begins)
        self._gradients: PartGradients | None = None
        self._statistics = RunningStatistics((), self.group)
        self._loader_of_update: RankLoader | None = None
        self._left_out = False  # the last update, for a loss that was not finite
        self._backwards: int | None = None  # of the accumulate block that is open
        if self.group.size > 1:
            self.group.where = lambda: f"update {self.updates + 1}"
        if self.group.size > 1 and group is None:
            end_all_with_one(self.group)

    # -- which rank this is ------------------------------------------------------------------

    @property
    def num_processes(self) -> int:
        """How many ranks there are."""
        return self.group.size

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""
        return self.group.rank

    @property
    def is_main_process(self) -> bool:
        """Whether this is rank 0, which prints and writes files."""
        return self.group.rank == 0

    def print(self, *values: object, **options: Any) -> None:
        """Python's print on rank 0, nothing on the others."""
        if self.is_main_process:
            builtins.print(*values, **options)

    def wait_for_everyone(self) -> None:
        """Return once every rank has called this."""
        self.group.barrier("wait_for_everyone")

    def end_training(self) -> None:
        """Wait until every rank has reached the end of its training."""
        self.group.barrier("end_training")

    # -- preparing ---------------------------------------------------------------------------

    def prepare(self, *objects: Any) -> Any:
        """Adapt modules, optimizers, schedulers and DataLoaders to these ranks; keeps their order.

        Modules go to the device and take rank 0's weights. Schedulers step once an update.
        DataLoaders give this rank its share. Returns one object by itself, several as a tuple.

        Raises:
            OptionTypeError: an object that is none of these.
            OptionError: ranks that prepare different things, or batches that cannot be dealt out.
        """
        for i, item in enumerate(objects):
            if not isinstance(item, nn.Module | optim.Optimizer | LRScheduler | DataLoader):
                raise OptionTypeError(
                    "prepare: takes modules, optimizers, schedulers and DataLoaders; argument "
                    f"{i + 1} is {format_value(item)}"
                )
        agree(self.group, "prepare", "; ".join(map(describe, objects)))
        for item in objects:
            if isinstance(item, nn.Module):
                self._take_model(item)
        prepared = tuple(map(self._prepare, objects))
        return prepared[0] if len(prepared) == 1 else prepared

    def _take_model(self, model: nn.Module) -> None:
        model.to(self.device)
        take_from_first(self.group, model.state_dict().values())
        self.models.append(model)
        self._gradients = None
        self._statistics = RunningStatistics(self.models, self.group)

    def _prepare(self, item: Any) -> Any:
        if isinstance(item, optim.Optimizer):
            self.optimizers.append(item.to(self.device))
        elif isinstance(item, LRScheduler):
            self.schedulers.append(item)
            return StepScheduler(item, self)
        elif isinstance(item, DataLoader):
            batches = self.gradient_accumulation_steps
            loader = RankLoader(item, batches, self.group, self.device, self.passes)
            self.loaders.append(loader)
            return loader
        return item

    # -- the loop ----------------------------------------------------------------------------

    @property
    def sync_grad(self) -> bool:
        """Whether the last micro-batch ended an update: `.grad` is the sum over all ranks."""
        return self._gradients is None or not self._gradients.pending

    @contextmanager
    def accumulate(self, *models: nn.Module) -> Iterator[None]:
        """One micro-batch; gradients are summed over the ranks in the last one of an update.

        A block that ends without `backward` is a micro-batch that adds nothing. Within such blocks
        the running statistics take in all micro-batches in order, on every rank; outside them a
        rank takes in its own batches only.
        """
        del models
        if self._backwards is not None:
            raise OptionError("accumulate: within another accumulate; a block is one micro-batch")
        self._backwards = 0
        try:
            with self._statistics.collect() if self._parts > 1 else nullcontext():
                yield
                if not self._backwards:
                    self._make_part(None)
        finally:
            self._backwards = None

    def backward(self, loss: Tensor) -> None:
        """The gradients of loss times this micro-batch's share of the update.

        The last micro-batch of an update leaves the sum over all micro-batches and ranks.

        Raises:
            NumericsError: a loss of the update is not finite, on all ranks (`nonfinite="raise"`).
        """
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise OptionError(f"backward: takes a loss of one number, got {format_value(loss)}")
        if self._backwards and self.gradient_accumulation_steps > 1:
            raise OptionError(
                "backward: a second time in one accumulate block; add the losses of a micro-batch"
            )
        if self._backwards is not None:
            self._backwards += 1
        self._make_part(loss)

    def _make_part(self, loss: Tensor | None) -> None:
        """One micro-batch of this rank, and behind the last one the sum."""
        gradients = self._gradients_of_update()
        gradients.begin()
        if loss is not None:
            share = self._share()
            (loss if share == 1 else loss * share).backward()
        losses = gradients.take(0.0 if loss is None else loss.item())
        if losses:
            self.updates += 1
            self._judge(gradients, losses)

    def _gradients_of_update(self) -> PartGradients:
        """The object that adds up the gradients of the parameters the prepared models train."""
        if self._gradients is not None and self._gradients.pending:
            return self._gradients
        leaves = {id(p): p for model in self.models for p in model.parameters() if p.requires_grad}
        if not leaves:
            raise OptionError("backward: there is nothing to train; prepare the model before")
        newest = self.passes.newest
        self._loader_of_update = None if newest is None else newest.loader
        if self._gradients is None or [*map(id, self._gradients.parameters)] != [*leaves]:
            self._gradients = PartGradients([*leaves.values()], self._parts, self.group)
        return self._gradients

    @property
    def _parts(self) -> int:
        return self.gradient_accumulation_steps * self.group.size

    def _share(self) -> float:
        """The part of its update's samples that the newest batch has."""
        newest = self.passes.newest
        return 1 / self._parts if newest is None else newest.samples / newest.samples_of_update

    def _pass_begins(self, loader: RankLoader) -> None:
        """Begin a pass of a loader; drop the update that an earlier pass left incomplete."""
        if loader is self._loader_of_update and self._gradients is not None:
            self._loader_of_update = None
            if self._gradients.pending:
                self._gradients.drop()
                self._statistics.drop()

    def _judge(self, gradients: PartGradients, losses: list[float]) -> None:
        """Raise or skip where a loss of the update is not finite, the same on all ranks."""
        self._left_out = not all(map(math.isfinite, losses))
        if not self._left_out:
            self._statistics.learn()
            return
        gradients.undo()
        self._statistics.drop()
        self.skipped += 1
        if self.nonfinite == "raise":
            part = next(i for i, loss in enumerate(losses) if not math.isfinite(loss))
            rank, number = divmod(part, self.gradient_accumulation_steps)
            raise NumericsError(
                f"backward: in update {self.updates} the loss of {self.group.names[rank]}, "
                f"micro-batch {number + 1} of {self.gradient_accumulation_steps}, is "
                f'{losses[part]}; Accelerator(nonfinite="skip") leaves such updates out'
            )

    def clip_grad_norm_(self, max_norm: NotNegative = 1.0) -> float | None:
        """Scale all gradients to a norm of at most max_norm; gives the norm before that.

        Within an update, and where it is skipped, nothing happens and the result is None.
        """
        if not self.sync_grad or self._left_out or self._gradients is None:
            return None
        self.grad_norm = optim.clip_grad_norm_(self._gradients.parameters, max_norm).item()
        return self.grad_norm

    def gather_for_metrics(self, value: Tensor | float, count: float = 1) -> Any:
        """A number: the mean over all ranks, each weighed by its count. A tensor: all ranks' rows.

        Args:
            value: a number or a tensor of none or more dimensions; rows may differ in number.
            count: of what the number is a mean on this rank, such as samples; 0 for nothing.
        """
        if isinstance(value, Tensor) and value.shape:
            return rows_of_all(self.group, value)
        number = value.item() if isinstance(value, Tensor) else float(value)
        if not 0 <= count < math.inf:
            raise OptionError(
                f"gather_for_metrics: count must be 0 or more, got {format_value(count)}"
            )
        if self.group.size == 1:
            return number
        data = self.group.all_gather(_PAIR.pack(number, count), "gather_for_metrics")
        pairs = [pair for pair in map(_PAIR.unpack, data) if pair[1]]
        total = math.fsum(weight for _, weight in pairs)
        return sum(each * weight for each, weight in pairs) / total if total else math.nan

    # -- state -------------------------------------------------------------------------------

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write all that a later `load_state` needs into a folder: rank 0 writes, all wait.

        One file holds models, optimizers, schedulers, where the loaders stand and the default
        generator. It knows nothing of ranks: any number that makes the same updates goes on.
        """
        if not self.sync_grad:
            raise OptionError("save_state: within an update; save where sync_grad is true")
        saved_state.save(self, Path(path))

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Restore what `save_state` wrote; rank 0 reads, and all ranks compare it first."""
        saved_state.load(self, Path(path))


def _ranks(timeout: float) -> Group:
    """The ranks that were joined; else those of the launcher, if there is one."""
    launch = find_launch() if distributed.group() is distributed.ALONE else None
    group = distributed.group() if launch is None else join_ranks(launch)
    if group.size > 1:
        group.timeout = timeout
    return group


def _device_of_rank(name: str, group: Group) -> str:
    """The GPU with this rank's number on its host, unless the name has a number."""
    device = engine.device(name)
    if group.size > 1 and device.type in GPUS and ":" not in name:
        device = engine.device(f"{device.type}:{group.local_rank}")
    return str(device)
