"""What the tests of watch's server share: a server in a thread, and those who ask it."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradcli.report.server import ADDRESS, Server

Answer = tuple[int, dict[str, str], str]


@contextmanager
def serving(run: Path, **options: Any) -> Iterator[Server]:
    """A server in a thread of its own; what it notes is a fault."""
    notes: list[str] = []
    options = {"render": lambda events: f"<p>{events}</p>", "note": notes.append, **options}
    with Server(run, port=free_port(), **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
    assert not notes


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as one:
        port: int = one.getsockname()[1]
        return port


def ask(server: Server, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(ADDRESS, server.server_port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def raw(server: Server, data: bytes) -> bytes:
    """What comes back for these bytes until the server closes."""
    with socket.create_connection((ADDRESS, server.server_port), timeout=10) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it has closed already
            pass
        parts = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except ConnectionError:
            pass
        return b"".join(parts)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that comes soon, or fail."""
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it does not come")
