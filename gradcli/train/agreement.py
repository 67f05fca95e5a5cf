"""Check that all ranks agree before a training begins, so that their numbers fit together."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from gradcli import __version__
from gradcli.data.hashes import so_far
from gradcli.devices import kind_of
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.kernels import BUILD
from gradcli.engine.distributed.group import other_rank
from gradcli.errors import ConfigError, DataError, DeviceError, GradcliError, say_once
from gradcli.train.compare import path_keys_of
from gradcli.wording import quantity, verb

if TYPE_CHECKING:
    from gradcli.engine.device.gpu.device import GPU
    from gradcli.engine.distributed.group import Group
    from gradcli.train.job import Job


class RankMachine(NamedTuple):
    """What a rank reports about its machine.

    Attributes:
        isas: the instruction sets that it may use, best first.
        cores: the numbers of the cores that it may use; it uses `threads` of them at once.
        offered: the cores of the process that started it, if known.
    """

    version: str
    machine: str
    source: str
    isas: Sequence[str]
    cores: Sequence[int]
    threads: int
    offered: Sequence[int]


def meet(group: Group) -> list[str]:
    """Compare versions and machines, choose the best common instruction set, share the cores.

    Returns lines to print.

    Raises:
        ConfigError: E804, a rank has another version or another kind of machine.
    """
    present = [RankMachine(*fields) for fields in group.gather_values(_presence(), "the start")]
    _check_same(group, "version", [presence.version for presence in present])
    _check_same(group, "kind of processor", [presence.machine for presence in present])
    _check_same(group, "build of the kernels", [presence.source for presence in present])
    cpu.share_cores(len(_neighbours(group, present, group.rank)))
    return [*_take_common_isa(group, present), *_cores_notes(group, present)]


def _presence() -> RankMachine:
    usable = cpu.usable_isas()
    cores = _cores(0)
    return RankMachine(
        __version__,
        platform.machine().lower(),
        BUILD.source,
        usable[usable.index(cpu.isa()) :],
        cores,
        cpu.available_threads(),
        _cores(os.getppid()) or cores,
    )


def _cores(process: int) -> Sequence[int]:
    """The cores that a process may use; none where the system does not say."""
    try:
        return sorted(os.sched_getaffinity(process))
    except (AttributeError, OSError):
        return ()


def _check_same(group: Group, what: str, values: Sequence[object]) -> None:
    """Raise unless a value is the same on all ranks."""
    rank = other_rank(values)
    if rank:
        difference = f"{_brief(values[rank])}, not {_brief(values[0])}"
        raise _mismatch(group, ConfigError, rank, what, difference)


def _mismatch(
    group: Group, kind: type[GradcliError], rank: int, what: str, difference: str
) -> GradcliError:
    names = group.names
    return say_once(
        kind(
            f"{names[rank]} has another {what} than {names[0]}: {difference}",
            code="E804",
            notes=("all ranks of a training need the same gradcli, config, own code and data",),
        )
    )


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 64 else f"{text[:61]}..."


def _take_common_isa(group: Group, present: Sequence[RankMachine]) -> Iterable[str]:
    """Choose the best instruction set that all have; yields a line if some have a better one."""
    best = [presence.isas[0] for presence in present]
    common = next(
        isa for isa in present[0].isas if all(isa in presence.isas for presence in present)
    )
    cpu.set_isa(common)
    if set(best) == {common}:
        return
    poor = next(rank for rank, presence in enumerate(present) if presence.isas[0] == common)
    rich = next(isa for isa in best if isa != common)
    yield f"all ranks compute with {common}: {group.names[poor]} lacks {rich}"


def _neighbours(group: Group, present: Sequence[RankMachine], rank: int) -> list[int]:
    """The ranks that share cores with `rank`, itself among them."""
    cores, hosts = set(present[rank].cores), [member.host for member in group.members]
    return [
        peer
        for peer in range(group.size)
        if hosts[peer] == hosts[rank] and (not cores or cores & set(present[peer].cores))
    ]


def _cores_notes(group: Group, present: Sequence[RankMachine]) -> Iterable[str]:
    """A line for each host with fewer cores than ranks, or with cores that no rank may use."""
    hosts = [member.host for member in group.members]
    for host in dict.fromkeys(hosts):
        here = [rank for rank in range(group.size) if hosts[rank] == host]
        crowd = max((_neighbours(group, present, rank) for rank in here), key=len)
        cores = present[crowd[0]].threads
        if len(crowd) > cores:
            yield (
                f"warning: {quantity(len(crowd), 'rank')} share {quantity(cores, 'core')} of "
                f"{host}: they take turns, and fewer ranks would be no slower"
            )
        usable = {core for rank in here for core in present[rank].cores}
        idle = len({core for rank in here for core in present[rank].offered} - usable)
        if idle:
            yield (
                f"warning: {quantity(idle, 'core')} of {host} {verb(idle, 'is', 'are')} idle: its "
                f"{quantity(len(here), 'rank')} {verb(len(here), 'is', 'are')} bound to "
                f"{quantity(len(usable), 'core')}; mpirun --bind-to none lets them use all"
            )


def agree_at_start(group: Group, job: Job, options: Mapping[str, object]) -> None:
    """Raise unless all ranks begin the same training on the same kind of device.

    Raises:
        GradcliError: E804, config, own code or data differ; E803, the kinds of devices do.
    """
    if group.size == 1:
        return
    group.timeout = job.settings.timeout
    device = next((parameter.device for parameter in job.model.parameters()), "cpu")
    facts = {
        "config": {**dict(_flat(job, job.resolved)), **options},
        "own code": {name: sha256(text.encode()).hexdigest() for name, text in job.code.items()},
        "data": so_far(job.dataset.sha256),
        "device": kind_of(device),
        "instruction set": cpu.isa(),
    }
    everyone = group.gather_values(facts, "the start")
    first = everyone[0]
    for rank, theirs in enumerate(everyone):
        for what, kind in (("config", ConfigError), ("own code", ConfigError)):
            _check_same_table(group, rank, what, kind, theirs[what], first[what])
        _check_same_table(
            group, rank, "data", DataError, *_without_unknown(theirs["data"], first["data"])
        )
        if theirs["instruction set"] != first["instruction set"]:
            both = f"{theirs['instruction set']}, not {first['instruction set']}"
            raise _mismatch(group, ConfigError, rank, "instruction set", both)
        if theirs["device"] != first["device"]:
            kinds = theirs["device"], first["device"]
            raise _other_device(group, rank, *kinds, "name one kind with --device, for all ranks")
    gpu = opened.device(device)
    if gpu is not None:
        _check_same_products(group, gpu)


def agree_on_data(group: Group, sha256: Mapping[str, object]) -> None:
    """Raise unless all ranks read the same data, once all hashes are there.

    Raises:
        DataError: E804, names the first file that differs.
    """
    everyone = group.gather_values(dict(sha256), "hashes of the data")
    for rank, theirs in enumerate(everyone):
        _check_same_table(group, rank, "data", DataError, theirs, everyone[0])


Table = Mapping[str, object]


def _without_unknown(theirs: Table, first: Table) -> tuple[Table, Table]:
    """Both tables without the keys that have no value yet in one of them."""
    unknown = {key for table in (theirs, first) for key, value in table.items() if value is None}
    theirs, first = ({k: v for k, v in t.items() if k not in unknown} for t in (theirs, first))
    return theirs, first


def _check_same_products(group: Group, gpu: GPU) -> None:
    """Raise unless the GPUs of all ranks are of one kind."""
    title = f"{gpu.name} ({gpu.driver.product()})"
    everyone = group.gather_values((gpu.driver.product(), title), "the start")
    rank = other_rank([product for product, _ in everyone])
    if rank:
        cure = "start ranks where all GPUs are of one kind, or with --device cpu"
        raise _other_device(group, rank, everyone[rank][1], everyone[0][1], cure)


def _other_device(group: Group, rank: int, theirs: str, first: str, cure: str) -> GradcliError:
    return say_once(
        DeviceError(
            f"{group.names[rank]} computes on {theirs}, {group.names[0]} on {first}: their bits "
            "would differ",
            code="E803",
            notes=(cure,),
        )
    )


def _flat(job: Job, values: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    """Each value of a config with its path; leaves out where the data lies."""
    path_keys = path_keys_of(job)
    for key, value in values.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flat(job, value, f"{path}.")
        elif path not in path_keys:
            yield path, value


def _check_same_table(
    group: Group,
    rank: int,
    what: str,
    kind: type[GradcliError],
    theirs: Mapping[str, object],
    first: Mapping[str, object],
) -> None:
    for key in dict.fromkeys([*first, *theirs]):
        if theirs.get(key) != first.get(key):
            difference = f"{key}: {_brief(theirs.get(key))}, not {_brief(first.get(key))}"
            raise _mismatch(group, kind, rank, what, difference)
