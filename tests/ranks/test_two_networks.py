"""Two ranks that reach each other over a network alone: each in a namespace of its own.

Without UCX_TLS=tcp,self they would meet in shared memory, for it is one machine all the same.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import ROOT, gradcli, is_open_mpi, mpirun, started

pytestmark = pytest.mark.mpi

STEPS, PARAMETERS = 40, 203_530  # of configs/mnist.yaml
ADDRESSES = ("10.213.77.1", "10.213.77.2")
TRAIN = ("-m", "gradcli", "train", str(ROOT / "configs" / "mnist.yaml"))
OPTIONS = ("-s", "train.micro_batch=32", "--threads", "1")


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


@dataclass(frozen=True)
class Networks:
    """Two namespaces with a cable between them, and what starts a rank in each."""

    names: tuple[str, str]
    links: tuple[str, str]
    remote: Path

    def launcher(self) -> list[str]:
        """mpirun, itself in the first network; the proxy of the second one is started there."""
        hosts = ["-hosts", ",".join(ADDRESSES), "-ppn", "1", "-n", "2"]
        there = ["-launcher", "ssh", "-launcher-exec", str(self.remote), "-localhost", ADDRESSES[0]]
        return ["ip", "netns", "exec", self.names[0], mpirun(), *there, *hosts]

    def received(self) -> int:
        """The bytes that came over the cable into the first network."""
        file = f"/sys/class/net/{self.links[0]}/statistics/rx_bytes"
        return int(ip("netns", "exec", self.names[0], "cat", file).stdout)

    def cut(self) -> None:
        ip("-n", self.names[0], "link", "set", self.links[0], "down")


def await_carrier(name: str, link: str) -> None:
    """Return once an end of the cable is up: that may be late, and MPI looks once."""
    limit = time.monotonic() + 10
    while "state UP" not in ip("-n", name, "link", "show", link).stdout:
        assert time.monotonic() < limit, "the cable does not come up"
        time.sleep(0.01)


_numbers = itertools.count()


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[Networks]:
    if is_open_mpi():
        pytest.skip("MPICH's mpirun alone starts ranks by a program in place of ssh here")
    unique = f"{os.getpid() % 100_000}{next(_numbers)}"
    names, links = (f"gca{unique}", f"gcb{unique}"), (f"va{unique}", f"vb{unique}")
    try:
        ip("netns", "add", names[0])
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"`ip netns add` is refused: {getattr(error, 'stderr', None) or error}")
    try:
        ip("netns", "add", names[1])
        ip(
            "-n",
            names[0],
            "link",
            "add",
            links[0],
            "type",
            "veth",
            "peer",
            links[1],
            "netns",
            names[1],
        )
        for name, link, address in zip(names, links, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")
        for name, link in zip(names, links, strict=True):
            await_carrier(name, link)
        remote = tmp_path / "remote"
        # As ssh is called: options, the host, and the words of a command for a shell.
        remote.write_text(
            '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\n'
            f'exec ip netns exec {names[1]} /bin/sh -c "$*"\n'
        )
        remote.chmod(0o755)
        yield Networks(names, links, remote)
    finally:
        for name in names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)


def test_the_bits_of_one_rank_and_the_gradients_on_the_cable(
    networks: Networks, tmp_path: Path
) -> None:
    words = (*TRAIN, *OPTIONS, "--max-steps", str(STEPS), "--json")
    alone = json.loads(gradcli(0, *words[2:], "--runs", "alone", cwd=tmp_path).out)
    before = networks.received()
    by, over = networks.launcher(), {"UCX_TLS": "tcp,self"}
    with started(2, *words, cwd=tmp_path, by=by, variables=over) as job:
        ended = job.end()
    assert ended.code == 0, ended.err
    both = json.loads(ended.out)
    assert both["weights_sha256"] == alone["weights_sha256"]
    assert both["metrics"] == alone["metrics"]
    gradients = 4 * PARAMETERS * STEPS
    assert gradients < networks.received() - before < 2 * gradients


def test_a_cable_that_is_cut_names_who_does_not_come(networks: Networks, tmp_path: Path) -> None:
    words = (*TRAIN, *OPTIONS, "-s", "train.epochs=1000", "-s", "train.timeout=5")
    by, over = networks.launcher(), {"UCX_TLS": "tcp,self"}
    with started(2, *words, cwd=tmp_path, by=by, variables=over) as job:
        limit = time.monotonic() + 60
        while not (logs := list(tmp_path.glob("runs/*/*/log.jsonl"))) or not logs[0].stat().st_size:
            assert time.monotonic() < limit and job.process.poll() is None
            time.sleep(0.1)
        networks.cut()
        ended = job.end(30)
        assert job.outlives(5) == {}
    assert ended.code == 75, ended.err
    assert "error[E806]" in ended.err
    assert "nothing from rank " in ended.err
