"""The server of a run's page: whom it answers, what it refuses, and what its streams tell."""

from __future__ import annotations

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from watch_client import ask, free_port, raw, serving, until

from gradcli.errors import OptionError, RunError
from gradcli.report import server as servers
from gradcli.report.server import ADDRESS, Server

LINE = '{"event": "step", "step": %d, "loss": 0.5}\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "log.jsonl").write_text(LINE % 1)
    return tmp_path


class Stream:
    """Events, as a browser reads them."""

    def __init__(self, server: Server, path: str = "/events", **headers: str) -> None:
        self.connection = http.client.HTTPConnection(ADDRESS, server.server_port, timeout=10)
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()

    def next(self) -> dict[str, str]:
        """The fields of the next event that is more than a remark."""
        fields: dict[str, str] = {}
        while "event" not in fields:
            fields = {}
            while line := self.answer.readline().decode().rstrip("\n"):
                name, _, value = line.partition(": ")
                fields[name] = value
        return fields


def append(run: Path, *steps: int) -> None:
    with (run / "log.jsonl").open("a") as log:
        log.writelines(LINE % step for step in steps)


def test_the_page_is_made_of_the_files_as_they_are(run: Path) -> None:
    times = []

    def render(events: str) -> str:
        times.append(events)
        return f"<p>{events}</p>"

    with serving(run, render=render) as server:
        status, headers, text = ask(server)
        assert (status, text) == (200, f"<p>{times[0]}</p>")
        assert times[0].startswith("/events?from=")
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Server"].strip() == "gradcli"
        ask(server, "/?a=b")
        assert len(times) == 1, "nothing has changed"
        append(run, 2)
        ask(server)
        assert len(times) == 2


def test_a_head_request_has_no_body(run: Path) -> None:
    with serving(run) as server:
        status, headers, text = ask(server, method="HEAD")
        assert (status, text) == (200, "") and int(headers["Content-Length"]) > 10
        assert ask(server, "/events", "HEAD")[::2] == (200, "")
        assert ask(server, "/x", "HEAD")[::2] == (404, "")


@pytest.mark.parametrize("host", ["localhost", "LocalHost", ADDRESS])
def test_it_answers_by_its_own_names(run: Path, host: str) -> None:
    with serving(run) as server:
        own = f"{host}:{server.server_port}"
        assert ask(server, Host=own)[0] == 200
        assert ask(server, Host=own, Origin=f"http://{own}")[0] == 200


@pytest.mark.parametrize("path", ["/", "/events", "/x"])
def test_another_host_or_origin_is_refused(run: Path, path: str) -> None:
    with serving(run) as server:
        port = server.server_port
        others = [f"evil.example:{port}", ADDRESS, "localhost", f"{ADDRESS}:{port + 1}", ""]
        others += [f"localhost.evil.example:{port}", f"{ADDRESS}:{port}@evil", f"[::1]:{port}"]
        for host in others:
            assert ask(server, path, Host=host)[0] == 403, host
        assert ask(server, path, Origin="http://evil.example")[0] == 403
        assert ask(server, path, Origin="null")[0] == 403
        own = b"Host: %s:%d\r\n" % (ADDRESS.encode(), port)
        line = b"GET %s HTTP/1.1\r\n" % path.encode()
        assert b" 403 " in raw(server, line + b"\r\n")
        assert b" 403 " in raw(server, line + own + own + b"\r\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", "X"])
def test_other_methods_are_refused(run: Path, method: str) -> None:
    with serving(run) as server:
        status, headers, _ = ask(server, method=method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        "/log.jsonl",
        "/../log.jsonl",
        "/%2e%2e/log.jsonl",
        "/events/",
        "//events/x",
        "/favicon.ico",
        "*",
        "http://127.0.0.1/",
        "/.",
        "/\x01",
    ],
)
def test_other_places_are_not_there(run: Path, path: str) -> None:
    with serving(run) as server:
        host = f"Host: {ADDRESS}:{server.server_port}"
        answer = raw(server, f"GET {path} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        assert b" 404 " in answer.partition(b"\r\n")[0]
        assert LINE[:9].encode() not in answer


def test_a_run_that_is_gone_is_named(run: Path) -> None:
    def render(events: str) -> str:
        raise RunError("it is gone")

    with serving(run, render=render) as server:
        assert ask(server)[::2] == (503, "it is gone\n")


def test_a_fault_of_a_page_is_one_sentence_and_the_next_is_made(run: Path, capfd: Any) -> None:
    pages, notes = iter([1, 2]), []

    def render(events: str) -> str:
        if next(pages) == 1:
            raise KeyError("odd")
        return "whole"

    with serving(run, render=render, note=notes.append) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server)
        assert ask(server)[2] == "whole"
    assert notes == ["a request was not answered: KeyError: 'odd'"]
    assert capfd.readouterr() == ("", "")


# -- streams ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the files are frequent, so that no test waits."""
    monkeypatch.setattr(servers, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(servers, "RENEW_SECONDS", 0.0)


def events_of(server: Server) -> str:
    """Where the page says that its events are."""
    return ask(server)[2][3:-4]


def test_a_stream_tells_what_came_since_the_page(run: Path) -> None:
    with serving(run) as server:
        events = events_of(server)
        append(run, 2)  # before the stream is opened
        stream = Stream(server, events)
        assert stream.answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        first = stream.next()
        assert first["event"] == "records"
        assert json.loads(first["data"]) == [{"event": "step", "step": 2, "loss": 0.5}]
        append(run, 3)
        assert [one["step"] for one in json.loads(stream.next()["data"])] == [3]
        again = Stream(server, events, **{"Last-Event-ID": first["id"]})
        assert [one["step"] for one in json.loads(again.next()["data"])] == [3]


def test_a_stream_asks_for_a_new_page_where_more_has_changed(run: Path) -> None:
    with serving(run) as server:
        stream = Stream(server, events_of(server))
        (run / "status.json").write_text("{}")
        assert stream.next()["event"] == "renew"
        (run / "log.jsonl").write_text("")
        assert stream.next()["event"] == "renew"
        append(run, 1)
        assert stream.next()["event"] == "renew"
        append(run, 2)
        assert stream.next()["event"] == "records"


def test_renewals_are_no_more_frequent_than_pages_can_be_made(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "RENEW_SECONDS", 3600.0)
    with serving(run) as server:
        stream = Stream(server, events_of(server))
        (run / "status.json").write_text("{}")
        assert stream.next()["event"] == "renew"
        (run / "status.json").write_text("{ }")
        append(run, 2)
        assert stream.next()["event"] == "records"


def test_a_stream_without_a_place_begins_at_the_end(run: Path) -> None:
    with serving(run) as server:
        streams = [Stream(server, place) for place in ("/events", "/events?from=x", "/events?%")]
        for one in streams:
            assert one.answer.readline() == b"retry: 2000\n"
        time.sleep(0.05)
        append(run, 2)
        for one in streams:
            assert [each["step"] for each in json.loads(one.next()["data"])] == [2]


def test_too_many_streams_are_refused_and_give_their_place_back(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MOST_STREAMS", 1)
    monkeypatch.setattr(servers, "BEAT_SECONDS", 0.0)
    with serving(run) as server:
        stream = Stream(server)
        assert ask(server, "/events")[0] == 503
        stream.answer.close()
        stream.connection.close()
        until(lambda: ask(server, "/events", "HEAD")[0] == 200)


def test_too_many_connections_are_closed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MOST_CONNECTIONS", 2)
    with serving(run) as server:
        place = ADDRESS, server.server_port
        idle = [socket.create_connection(place) for _ in range(2)]
        assert raw(server, b"GET / HTTP/1.0\r\n\r\n") == b""
        for one in idle:
            one.close()
        until(lambda: raw(server, b"GET / HTTP/1.0\r\n\r\n") != b"")


# -- ports -----------------------------------------------------------------------------------------


def test_a_port_in_use_is_refused_by_name_and_passed_over_without_one(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = free_port()
    monkeypatch.setattr(servers, "PORT", first)
    with serving(run) as server:
        taken = server.server_port
        with pytest.raises(OptionError, match=f"port {taken} of {ADDRESS}: it is in use"):
            Server(run, str, taken)
        monkeypatch.setattr(servers, "PORT", taken)
        with Server(run, str) as other:
            assert taken < other.server_port < taken + servers.TRIES
        monkeypatch.setattr(servers, "TRIES", 1)
        with pytest.raises(OptionError, match=f"all ports of {ADDRESS} from {taken} to {taken}"):
            Server(run, str)
