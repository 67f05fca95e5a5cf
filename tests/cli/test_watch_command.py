"""`gradcli watch`: it tells its address, shows a run that another process makes, and ends."""

from __future__ import annotations

import errno
import http.client
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from points import gradcli, only_run
from refusals import begin, finish, refused

from gradcli.report.server import ADDRESS

__all__ = ["gradcli", "refused"]


@contextmanager
def watching(*arguments: str) -> Iterator[int]:
    """`gradcli watch` in a process of its own, which Ctrl-C ends; its port."""
    with socket.create_server((ADDRESS, 0)) as one:
        port = one.getsockname()[1]
    process = begin(Path(), "watch", *arguments, "--port", str(port))
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.fullmatch(rf"\S+ is at http://{ADDRESS}:{port}/ until Ctrl-C\n", line), line
        yield port
        process.send_signal(signal.SIGINT)
        ended = finish(process)
        assert (ended.code, ended.out, ended.err) == (0, "", "")
    finally:
        process.kill()
        process.wait()


def ask(port: int, path: str = "/") -> tuple[int, str]:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_run_is_shown_and_its_new_records_are_told(gradcli) -> None:
    gradcli("train", "dots.yaml")
    with watching() as port:
        status, page = ask(port)
        assert status == 200 and "connect-src" in page
        place = re.search(r'"live":"(/events\?from=[0-9-]+)"', page)
        assert place is not None
        with (only_run() / "log.jsonl").open("a") as log:
            log.write('{"event": "step", "step": 1000000, "loss": 0.125}\n')
        connection = http.client.HTTPConnection(ADDRESS, port, timeout=60)
        connection.request("GET", place[1])
        answer = connection.getresponse()
        lines = [answer.readline().decode() for _ in range(5)]
        assert lines[-1] == 'data: [{"event":"step","step":1000000,"loss":0.125}]\n'
        assert ask(port, "/log.jsonl")[0] == 404


def test_a_run_without_a_log_is_shown(gradcli) -> None:
    gradcli("train", "dots.yaml")
    (only_run() / "log.jsonl").unlink()
    with watching(str(only_run())) as port:
        status, page = ask(port)
        assert status == 200 and "log.jsonl is absent" in page


def test_what_is_no_run_is_not_watched(gradcli, refused) -> None:
    refused(7, "holds no runs yet", "watch")
    Path("empty").mkdir()
    refused(7, "is not a run: it has no resolved.yaml", "watch", "empty")


def test_a_run_that_is_removed_is_named_and_shown_when_it_is_back(gradcli) -> None:
    gradcli("train", "dots.yaml")
    run = only_run()
    with watching() as port:
        run.rename("elsewhere")
        assert ask(port) == (503, f"{run} is not a run: it has no resolved.yaml\n")
        Path("elsewhere").rename(run)
        assert ask(port)[0] == 200


def test_a_port_that_cannot_be_had_is_refused(gradcli, refused) -> None:
    gradcli("train", "dots.yaml")
    with socket.create_server((ADDRESS, 0)) as one:
        port = one.getsockname()[1]
        words = f"port {port} of {ADDRESS}: it is in use; name another, or none for a free one"
        refused(2, words, "watch", "--port", port)
    for odd in ("0", "65536", "x"):
        refused(2, "Invalid value for '--port'", "watch", "--port", odd)


def test_a_locked_folder_cannot_be_watched(
    gradcli, refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradcli("train", "dots.yaml")
    run = only_run()
    if os.getuid():
        run.chmod(0)
    else:  # root reads everything
        monkeypatch.setattr(Path, "is_file", _forbidden)
    refused(7, f"cannot read {run}: Permission denied", "watch", run)


def _forbidden(path: Path) -> bool:
    raise PermissionError(errno.EACCES, "Permission denied", str(path))
