"""The way between GPUs of ranks: NCCL where all of them have it, else the host's memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from gradcli.devices import kind_of
from gradcli.engine.device.gpu import opened
from gradcli.engine.distributed.group import Group
from gradcli.errors import DeviceError
from gradcli.wording import join_words

if TYPE_CHECKING:
    from gradcli.engine.distributed.nccl import Communicator

SWITCH = "GRADCLI_NCCL"  # 0 in the environment of a rank: the host's memory, although NCCL is there
_WHAT = "the choice of the way between GPUs"


class Way(NamedTuple):
    """How gradients travel between GPUs: by NCCL's communicator, or without one by the host.

    Attributes:
        words: the same for people; empty where there is nothing to choose.
    """

    gpus: Communicator | None
    words: str


class Offer(NamedTuple):
    """What a rank has to choose from.

    Attributes:
        lack: why it has no NCCL to use.
        version: of its NCCL.
        gpu: the name that no other GPU has.
    """

    lack: str
    version: str = ""
    gpu: str = ""


_ways: WeakKeyDictionary[Group, dict[str, Way]] = WeakKeyDictionary()


def way(group: Group, device: str) -> Way:
    """That of the ranks' GPUs, the same each time; all ranks have to ask, with their own device.

    It is the host's memory on all ranks where one of them is not on CUDA, lacks NCCL, has another
    version of it or shares its GPU with another rank, or where NCCL refuses.
    """
    ways = _ways.setdefault(group, {})
    if device not in ways:
        several = group.size > 1 and kind_of(device) == "cuda"
        ways[device] = _choose(group, device) if several else Way(None, "")
    return ways[device]


def _choose(group: Group, device: str) -> Way:
    from gradcli.engine.distributed import nccl  # nobody without several GPUs waits for it

    gpu: Any = opened.device(device)
    try:
        offer = Offer(_switched_off(), nccl.version(), gpu.driver.uuid())
    except DeviceError:
        offer = Offer(_switched_off() or "NCCL cannot be loaded")
    offers = [Offer(*fields) for fields in group.gather_values(offer, _WHAT)]
    reason = rejection(group.names, offers)
    if reason:
        return _by_host(reason)
    own, refusal = None, ""
    try:
        own = nccl.Communicator(group)
    except DeviceError as error:
        refusal = error.message
    refusals = [Offer(lack) for lack in group.gather_values(refusal, _WHAT)]
    if own is None or any(offer.lack for offer in refusals):
        return _by_host(rejection(group.names, refusals))
    gpu.driver.patience = own.wait
    return Way(own, f"gradients travel by NCCL {offer.version}")


def _switched_off() -> str:
    return f"{SWITCH}=0" if os.environ.get(SWITCH) == "0" else ""


def _by_host(reason: str) -> Way:
    return Way(None, f"gradients travel through host memory: {reason}")


def rejection(names: Sequence[str], offers: Sequence[Offer]) -> str:
    """Why NCCL does not join what ranks of these names offer; empty where it may."""
    lacks = [offer.lack for offer in offers]
    first = next(filter(None, lacks), "")
    if first:
        those = [name for name, lack in zip(names, lacks, strict=True) if lack == first]
        return f"{first} on {join_words(those) if len(those) < len(names) else 'all ranks'}"
    for rank, offer in enumerate(offers):
        if offer.version != offers[0].version:
            return f"{names[rank]} has NCCL {offer.version}, {names[0]} {offers[0].version}"
        same = [peer for peer in range(rank) if offers[peer].gpu == offer.gpu]
        if same:
            return f"{names[same[0]]} and {names[rank]} share a GPU"
    return ""
