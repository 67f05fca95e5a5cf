"""The page of a run on this machine's own address, kept up to date by server-sent events.

It answers whoever asks for it by its own address, and nobody else: a page of another site that a
browser has open could have a name of its own point here, and read along.
"""

from __future__ import annotations

import errno
import io
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gradcli.errors import GradcliError, OptionError
from gradcli.report.feed import Feed, Mark, mark_in, mark_of

ADDRESS = "127.0.0.1"
PORT = 8237
TRIES = 20  # ports from PORT on, where none is named
MOST_CONNECTIONS, MOST_STREAMS = 32, 12
REQUEST_SECONDS = 10.0  # for a request to arrive, and for each part of an answer to be taken
LOOK_SECONDS = 0.5  # between two looks at the files
BEAT_SECONDS = 10.0  # of silence, after which a stream finds out whether somebody is there
RENEW_SECONDS = 1.0  # between two renewals of a page
SHARE = 50  # times as long as a page takes to be made: a training may need the core
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves one run; it listens from construction on.

    Attributes:
        run: its directory.
        address: what a browser is pointed to.
        ending: set once the server ends.
        streams: how many more streams of events there may be.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        run: Path,
        render: Callable[[str], str],
        port: int | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Listen on a port; on the first free one where None is named.

        Args:
            run: the run's directory.
            render: the page, for the address of the events that keep it up to date.
            port: from 1 to 65535.
            note: is told in a sentence what nobody foresaw.

        Raises:
            OptionError: the port is in use, or forbidden to this user.
        """
        self.run, self.ending = run, threading.Event()
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.render_seconds = 0.0
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._render, self._note = render, note
        self._rendering = threading.Lock()
        self._page: tuple[Mark, bytes] | None = None
        super().__init__((ADDRESS, 0), Handler, bind_and_activate=False)
        try:
            self._listen(port)
        except BaseException:
            self.server_close()
            raise
        self.names = {f"{host}:{self.server_port}" for host in (ADDRESS, "localhost")}
        if self.server_port == 80:
            self.names |= {ADDRESS, "localhost"}
        self.address = f"http://{ADDRESS}:{self.server_port}/"

    def _listen(self, port: int | None) -> None:
        for candidate in range(PORT, PORT + TRIES) if port is None else (port,):
            self.server_address = (ADDRESS, candidate)
            try:
                self.server_bind()
                self.server_activate()
                return
            except OSError as error:
                if port is not None or error.errno != errno.EADDRINUSE:
                    raise OptionError(f"port {candidate} of {ADDRESS}: {_reason(error)}") from error
                # A socket that was refused may have a port all the same.
                self.socket.close()
                self.socket = socket.socket(self.address_family, self.socket_type)
        raise OptionError(f"all ports of {ADDRESS} from {PORT} to {PORT + TRIES - 1} are in use")

    def server_bind(self) -> None:
        """Bind without asking for the machine's name, which may take a network and seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def page(self) -> bytes:
        """The page as the run's files are now; made once for all who ask meanwhile."""
        with self._rendering:
            mark = mark_of(self.run)
            if self._page is None or self._page[0] != mark:
                began = time.monotonic()
                text = self._render(f"/events?from={mark}")
                self._page = mark, text.encode("utf-8", "replace")
                self.render_seconds = time.monotonic() - began
            return self._page[1]

    # Of the frame: too many connections are closed, and no fault of one ends the server.

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, unless there are many already."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What the thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has left; all else is told in a sentence, and the next request comes."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self._note(f"a request was not answered: {type(error).__name__}: {error}")

    def shutdown(self) -> None:
        """End, and with it all streams."""
        self.ending.set()
        super().shutdown()


class Handler(BaseHTTPRequestHandler):
    """One request: the page, or the events that keep it up to date."""

    server: Server
    server_version = "gradcli"
    sys_version = ""

    def setup(self) -> None:
        """A request has to be there in time as a whole, however slowly it comes."""
        super().setup()
        self.rfile = io.BufferedReader(_InTime(self.connection, REQUEST_SECONDS))

    def parse_request(self) -> bool:
        """Whether the request can be answered; if not, an error is sent."""
        if not super().parse_request():
            return False
        self.connection.settimeout(REQUEST_SECONDS)
        hosts = self.headers.get_all("Host") or []
        origins = self.headers.get_all("Origin") or []
        names = self.server.names
        if len(hosts) != 1 or hosts[0].strip().lower() not in names:
            self.send_error(HTTPStatus.FORBIDDEN)
            return False
        if any(origin.strip().lower().removeprefix("http://") not in names for origin in origins):
            self.send_error(HTTPStatus.FORBIDDEN)
            return False
        return True

    def do_GET(self) -> None:
        """The page at /, its events at /events, nothing elsewhere."""
        path, _, query = self.path.partition("?")
        if path == "/":
            self._send_page()
        elif path == "/events":
            self._send_events(query)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 -- the same

    def _send_page(self) -> None:
        try:
            page = self.server.page()
        except GradcliError as error:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error.message}\n".encode())
            return
        self._send(HTTPStatus.OK, "text/html", page)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._begin(status, f"{kind}; charset=utf-8", {"Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: HTTPStatus, kind: str, extra: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Connection": "close",
            **HEADERS,
            **extra,
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_events(self, query: str) -> None:
        if not self.server.streams.acquire(blocking=False):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        try:
            self._begin(HTTPStatus.OK, "text/event-stream; charset=utf-8", {})
            if self.command != "HEAD":
                text = self.headers.get("Last-Event-ID") or query.removeprefix("from=")
                run = self.server.run
                self._follow(Feed(run, mark_in(text) or mark_of(run)))
        finally:
            self.server.streams.release()

    def _follow(self, feed: Feed) -> None:
        """Tell what is new in the run until the server ends, or nobody takes it any more."""
        self.wfile.write(b"retry: 2000\n\n")
        renewed, beat, due = -1e9, time.monotonic(), False
        while True:
            news, now = feed.look(), time.monotonic()
            due = due or news.renew
            events = [_event("records", feed.mark, news.records)] if news.records else []
            if due and now - renewed >= max(RENEW_SECONDS, SHARE * self.server.render_seconds):
                events, renewed, due = [_event("renew", feed.mark, None), *events], now, False
            if now - beat >= BEAT_SECONDS and not events:
                events = [b":\n\n"]
            if events:
                self.wfile.write(b"".join(events))
                beat = now
            if self.server.ending.wait(LOOK_SECONDS):
                return

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a short error that repeats nothing of the request."""
        status = HTTPStatus(code)
        extra: dict[str, str] = {}
        if status is HTTPStatus.NOT_IMPLEMENTED:  # what http.server says of an unknown method
            status, extra = HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"}
        body = f"{status.value} {status.phrase}\n".encode()
        kind = "text/plain; charset=utf-8"
        self._begin(status, kind, {"Content-Length": str(len(body)), **extra})
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads a line for each request."""


class _InTime(io.RawIOBase):
    """Reads from a connection until a moment, whatever comes in between."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self._end - time.monotonic()
        if rest <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(rest)
        return self._connection.recv_into(buffer)


def _event(name: str, mark: Mark, value: object) -> bytes:
    data = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return f"id: {mark}\nevent: {name}\ndata: {data}\n\n".encode()


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "it is in use; name another, or none for a free one"
    if error.errno == errno.EACCES:
        return "it is kept for the system; name one from 1024 on"
    return error.strerror or str(error)
