"""An S3 server for tests: moto's server on loopback, in a thread of this process.

moto checks a condition and then writes, without a lock around both. S3 itself promises that this is
atomic, so one lock here serializes moto's writes. Must not live here: the tests that use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from strongroom.testing.ports import HOST, free_port

KEYS: Final = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
Application = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


class OneWriteAtATime:
    """A WSGI application whose writes are atomic.

    Attributes:
        requests: method and path of every request.
        lose_next: how many of the next writes are applied, but answered by an error.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self.lose_next = 0

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        self.requests.append((method, environ["PATH_INFO"]))
        if method not in ("PUT", "DELETE"):
            return self._application(environ, start)
        with self._lock:
            answer = list(self._application(environ, start))
            if self.lose_next:
                self.lose_next -= 1
                start("503 Slow Down", [("Content-Length", "0")])
                return [b""]
            return answer


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        """Say nothing."""


def moto() -> OneWriteAtATime:
    """Return a new, empty S3."""
    return OneWriteAtATime(DomainDispatcherApplication(create_backend_app))


@contextmanager
def serving(application: OneWriteAtATime) -> Iterator[str]:
    """Run the server, and yield its URL without a bucket."""
    server = make_server(HOST, free_port(), application, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
