"""A plain HTTP server of a test, as the source of copies.

`add` sets the answer at a path. A source may be held: its head and its first bytes are sent at
once, the rest when `release` is called. Must not live here: anything of the Blob protocol.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from strongroom.testing.ports import free_port

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Source:
    """An answer; `announced` is its announced length (None: the length of the body).

    `ranges`: a range is answered with that part, as most servers do.
    """

    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    status: int = 200
    announced: int | None = None
    held: bool = False
    ranges: bool = False


class Sources:
    """The server; used in a `with` statement.

    Attributes:
        asked: the requested paths.
        headers: the header fields of the last request, names in lower case.
    """

    def __init__(self) -> None:
        self._found: dict[str, Source] = {}
        self._go_on = threading.Event()
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}
        self._server = ThreadingHTTPServer((HOST, free_port()), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._server.server_address[1]

    def add(self, path: str, source: Source) -> str:
        """Answer `source` at `path`, and return the URL."""
        self._found[path] = source
        return f"http://{HOST}:{self.port}{path}"

    def release(self) -> None:
        """Send the rest of every held source."""
        self._go_on.set()

    def close(self) -> None:
        """Stop the server."""
        self.release()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sources = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                sources.asked.append(self.path)
                sources.headers = {name.lower(): text for name, text in self.headers.items()}
                found = sources._found.get(self.path, Source(status=404))
                self._answer(_of_range(found, self.headers.get("Range")))

            def do_HEAD(self) -> None:
                self.do_GET()

            def _answer(self, source: Source) -> None:
                announced = len(source.body) if source.announced is None else source.announced
                self.send_response(source.status)
                for name, value in source.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(announced))
                self.end_headers()
                if self.command == "HEAD":
                    return
                self._send(source)
                if announced != len(source.body):
                    self.close_connection = True

            def _send(self, source: Source) -> None:
                try:
                    if source.held:
                        self.wfile.write(source.body[:1])
                        self.wfile.flush()
                        sources._go_on.wait(timeout=30)
                        self.wfile.write(source.body[1:])
                    else:
                        self.wfile.write(source.body)
                except OSError:
                    self.close_connection = True  # the reader has disconnected

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _of_range(source: Source, wanted: str | None) -> Source:
    """Return the answer of a server that supports ranges."""
    if not source.ranges or wanted is None:
        return source
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    begin, size = int(first), len(source.body)
    if begin >= size:
        return Source(status=416, headers=(("Content-Range", f"bytes */{size}"),))
    end = min(int(last) if last else size, size - 1)
    told = ("Content-Range", f"bytes {begin}-{end}/{size}")
    return Source(source.body[begin : end + 1], (*source.headers, told), 206)
