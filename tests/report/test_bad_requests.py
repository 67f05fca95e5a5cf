"""Requests that no browser sends: each gets a refusal or nothing, and the server goes on."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from watch_client import ask, raw, serving, until

from gradcli.report import server as servers
from gradcli.report.server import ADDRESS


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path


def test_a_slow_client_is_cut_off(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "REQUEST_SECONDS", 0.1)
    with serving(run) as server:
        place = ADDRESS, server.server_port
        with socket.create_connection(place, timeout=10) as silent:
            assert silent.recv(100) == b""
        slow = socket.create_connection(place, timeout=10)
        with slow, pytest.raises(ConnectionError):
            for byte in b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000:
                slow.send(bytes([byte]))
                time.sleep(0.001)
        assert ask(server)[0] == 200


def test_a_client_that_reads_nothing_is_cut_off(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(servers, "MOST_CONNECTIONS", 1)
    with serving(run, render=lambda events: "x" * 50_000_000) as server:
        place = ADDRESS, server.server_port
        with socket.create_connection(place) as deaf:
            own = f"{ADDRESS}:{server.server_port}"
            deaf.sendall(f"GET / HTTP/1.1\r\nHost: {own}\r\n\r\n".encode())
            until(lambda: raw(server, b"GET / HTTP/1.0\r\n\r\n") != b"")


def bad_requests(count: int) -> Iterator[bytes]:
    """Requests of all kinds of wrongness, the same each time."""
    draw = random.Random(17)
    pieces = [
        b"GET / HTTP/1.1\r\n",
        b"GET /events HTTP/1.1\r\n",
        b"GET",
        b"HTTP/1.1",
        b"HTTP/9.9",
        b"HTTP/1.\xb2",
        b" ",
        b"\r\n",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b"Host: 127.0.0.1\r\n",
        b"Host:\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Last-Event-ID: 1-2-3\r\n",
        b": \r\n",
        b"X: " + b"y" * 70_000 + b"\r\n",
        b"X: y\r\n" * 300,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ]
    for _ in range(count):
        some = [draw.choice(pieces) for _ in range(draw.randrange(1, 6))]
        if draw.random() < 0.3:
            some.append(draw.randbytes(draw.randrange(200)))
        yield b"".join(some) + draw.choice([b"", b"\r\n\r\n"])


def test_bad_requests_get_a_refusal_or_nothing(run: Path, capfd: Any) -> None:
    with serving(run) as server:
        for data in bad_requests(300):
            answer = raw(server, data)
            assert b" 200 " not in answer.partition(b"\r\n")[0], data[:200]
            assert b"<" not in answer, "nothing of a request comes back"
        assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")
