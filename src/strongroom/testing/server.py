"""A real server for tests: on a thread of this process, or in its own process.

Lives here: starting, stopping, killing, and moving the clock. Must not live here: fixtures
(pytest_plugin.py). Both kinds serve the development account on free ports of loopback.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from strongroom.app import App, CannotListen
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.auth.request import Service
from strongroom.cli.exits import Exit
from strongroom.clock import SystemClock
from strongroom.config import Settings, without_settings
from strongroom.platform.event_loops import new_event_loop
from strongroom.platform.files import pread
from strongroom.platform.processes import CREATION_FLAGS, ask_to_stop
from strongroom.servers.own_endpoints import PREFIX
from strongroom.services.core.resetting import ResetRefused
from strongroom.testing.faults import FaultControl
from strongroom.testing.ports import HOST, free_port, is_free
from strongroom.testing.resets import reset_app

T = TypeVar("T")
Ports = tuple[int, int, int, int]

_START_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 30.0
_PAUSE_S: Final = 0.01
_LAST_LINE: Final = f"{PREFIX}health\n"
_PORT_TRIES: Final = 5


class ServerFailed(Exception):
    """The server did not start, or refused a request; the message holds its last output."""


class ServerClock(Protocol):
    """The server's store time, which leases, expiries and Last-Modified use."""

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once: leases expire, and waiting requests check again.

        The time for signatures does not move. Raises ServerFailed without a test clock.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """The address of a server of this module: the ports of its four services."""

    ports: Ports

    @property
    def urls(self) -> tuple[str, str, str, str]:
        blob, queue, table, file = (f"http://{HOST}:{port}" for port in self.ports)
        return blob, queue, table, file

    @property
    def connection_string(self) -> str:
        name = DEVELOPMENT_ACCOUNT_NAME
        blob, queue, table, file = self.urls
        return (
            f"DefaultEndpointsProtocol=http;AccountName={name};"
            f"AccountKey={DEVELOPMENT_ACCOUNT_KEY};BlobEndpoint={blob}/{name};"
            f"QueueEndpoint={queue}/{name};TableEndpoint={table}/{name};"
            f"FileEndpoint={file}/{name};"
        )


class InProcessServer:
    """A server on a thread of this process, with its own event loop.

    It starts in milliseconds. Stop it with `stop`, or use it in a `with` or `async with` statement.

    Attributes:
        connection_string: of the development account, as every Azure SDK accepts it.
        url: the URL of the Blob service, without the account.
        clock: moves the store time.
        faults: injects faults (faults.py); needs a test clock.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._started: Future[App] = Future()
        self._thread = threading.Thread(target=self._run, name="strongroom", daemon=True)
        self._thread.start()
        self._app = self._started.result(_START_TIMEOUT_S)
        ports = self._app.ports
        blob, queue, table, file = (ports[service.value] for service in Service)
        self._endpoint = _Endpoint((blob, queue, table, file))
        self.clock: ServerClock = _LoopClock(self)
        self.faults = _faults(self.port)

    def __repr__(self) -> str:
        state = "running" if self._thread.is_alive() else "stopped"
        return f"<{type(self).__name__} {self.url}, {state}>"

    @classmethod
    def start(
        cls,
        *,
        data: str | os.PathLike[str] | None = None,
        test_clock: bool = True,
        strict: bool = False,
        port: int | None = None,
        allow_reset: bool = False,
    ) -> InProcessServer:
        """Start a server and return it.

        Arguments:
            data: the data directory; None: in memory.
            test_clock: whether `clock` may be moved. An existing data directory keeps the setting
                that it was created with.
            strict: an error that an operation does not declare becomes a 500.
            port: the port of the Blob service; None: a free one. The other services use free ones.
            allow_reset: whether `reset` may be used on a data directory, which must have been
                created with it. In memory with a test clock it may always be used.

        Raises: strongroom.app.DataUnusable, CannotListen.
        """
        settings = Settings(
            data=None if data is None else Path(data),
            test_clock=test_clock,
            strict=strict,
            allow_reset=allow_reset,
        )
        return _on_free_ports(port, lambda chosen: cls(_with_ports(settings, chosen)))

    @property
    def connection_string(self) -> str:
        """The connection string of the development account."""
        return self._endpoint.connection_string

    @property
    def url(self) -> str:
        """The URL of the Blob service, `http://127.0.0.1:PORT`, without the account."""
        return self._endpoint.urls[0]

    @property
    def queue_url(self) -> str:
        """The URL of the Queue service, in the form of `url`."""
        return self._endpoint.urls[1]

    @property
    def table_url(self) -> str:
        """The URL of the Table service, in the form of `url`."""
        return self._endpoint.urls[2]

    @property
    def file_url(self) -> str:
        """The URL of the File service, in the form of `url`."""
        return self._endpoint.urls[3]

    @property
    def port(self) -> int:
        """The port of the Blob service."""
        return self._endpoint.ports[0]

    def advance(self, seconds: float) -> None:
        """Move the store time; see ServerClock.advance."""
        if not self._settings.test_clock:
            raise ServerFailed("this server was started without a test clock")
        moved: Future[None] = Future()

        def move() -> None:
            try:
                self._app.advance(seconds)
            except Exception as error:
                moved.set_exception(error)
            else:
                moved.set_result(None)

        self.loop.call_soon_threadsafe(move)
        moved.result(_STOP_TIMEOUT_S)

    def reset(self) -> None:
        """Remove everything from the store; see docs/testing.md. Raises ServerFailed."""
        try:
            reset_app(self._app, self.loop, _STOP_TIMEOUT_S)
        except ResetRefused as refusal:
            raise ServerFailed(f"the server was not reset: {refusal}") from None

    def stop(self) -> None:
        """Drain and stop the server. Idempotent. Raises ServerFailed if it does not end."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_STOP_TIMEOUT_S)
            if self._thread.is_alive():
                raise ServerFailed("the server's thread does not end")

    def __enter__(self) -> InProcessServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> InProcessServer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        app = App(self._settings, SystemClock())
        try:
            await app.start()
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(app)
        await self._stopped.wait()
        await app.stop()


class _LoopClock:
    def __init__(self, server: InProcessServer) -> None:
        self._server = server

    def advance(self, seconds: float) -> None:
        self._server.advance(seconds)


class Server:
    """`strongroom serve` in its own process, which can be killed. Use it like InProcessServer.

    Attributes:
        connection_string, url, clock, faults: see InProcessServer.
        data: the data directory; None in memory.
        pid: the process id.
    """

    def __init__(
        self,
        data: Path | None,
        test_clock: bool,
        ports: Ports,
        flags: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> None:
        self.data = data
        self._test_clock = test_clock
        self._endpoint = _Endpoint(ports)
        self._flags = flags
        self._environment = environment
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = self._spawn()
        self.clock: ServerClock = _HttpClock(self)
        self.faults = _faults(self.port)
        self._await_ready()

    @classmethod
    def start(
        cls,
        *,
        data: str | os.PathLike[str] | None = None,
        test_clock: bool = True,
        port: int | None = None,
        flags: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Server:
        """Start a server, and return it when it is ready.

        Arguments:
            data, test_clock, port: see InProcessServer.start.
            flags: further flags of `strongroom serve`.
            environment: further environment variables of the server.

        Raises: ServerFailed, with the server's output.
        """
        path = None if data is None else Path(data)
        variables = dict(environment or {})
        return _on_free_ports(port, lambda chosen: cls(path, test_clock, chosen, flags, variables))

    @property
    def connection_string(self) -> str:
        """The connection string of the development account."""
        return self._endpoint.connection_string

    @property
    def url(self) -> str:
        """The URL of the Blob service, `http://127.0.0.1:PORT`, without the account."""
        return self._endpoint.urls[0]

    @property
    def queue_url(self) -> str:
        """The URL of the Queue service, in the form of `url`."""
        return self._endpoint.urls[1]

    @property
    def table_url(self) -> str:
        """The URL of the Table service, in the form of `url`."""
        return self._endpoint.urls[2]

    @property
    def file_url(self) -> str:
        """The URL of the File service, in the form of `url`."""
        return self._endpoint.urls[3]

    @property
    def port(self) -> int:
        """The port of the Blob service."""
        return self._endpoint.ports[0]

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process (negative: the signal that ended it); None while it runs."""
        return self._process.poll()

    def output(self, start: int = 0) -> str:
        """Return the server's output so far, of both streams, from the byte `start`."""
        file_number = self._output.fileno()
        size_bytes = os.fstat(file_number).st_size - start
        return pread(file_number, max(0, size_bytes), start).decode("utf-8", "replace")

    def reset(self) -> None:
        """Remove everything from the store; see docs/testing.md. Raises ServerFailed."""
        status, text = _ask(self.port, "POST", "reset")
        if status != 200:
            raise ServerFailed(f"the server was not reset: {text}")

    def stop(self) -> None:
        """Ask the server to drain and end, and wait until it has ended. Idempotent."""
        self._end(ask_to_stop)

    def kill(self) -> None:
        """Kill the server (SIGKILL), like a crash. Idempotent; `restart` starts it again."""
        self._end(subprocess.Popen.kill)

    def restart(self) -> None:
        """Start the server again on the same ports and data, after `stop` or `kill`."""
        self.stop()
        self._process = self._spawn()
        self._await_ready()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop the server, and close its output. Idempotent."""
        self.stop()
        self._output.close()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._started_at = os.fstat(self._output.fileno()).st_size
        command = [sys.executable, "-m", "strongroom", "serve"]
        for service, port in zip(Service, self._endpoint.ports, strict=True):
            command += [f"--{service.value}-port", str(port)]
        command += ["--in-memory"] if self.data is None else ["--data", str(self.data)]
        command += ["--test-clock"] if self._test_clock else []
        has_console = any(flag.startswith("--console") for flag in self._flags)
        command += [] if has_console else ["--no-console"]
        # Settings in the environment of the test run must not reach the server.
        environment = without_settings(os.environ)
        return subprocess.Popen(  # noqa: S603 - our own program
            [*command, *self._flags],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            creationflags=CREATION_FLAGS,
            env={**environment, **self._environment},
        )

    def _await_ready(self) -> None:
        for _ in range(round(_START_TIMEOUT_S / _PAUSE_S)):
            try:
                self._process.wait(_PAUSE_S)
                break
            except subprocess.TimeoutExpired:
                pass
            # The server's own output, not a response on its port, which another server may have
            # taken.
            if _LAST_LINE in self.output(self._started_at):
                return
        code = self.exit_code
        self.kill()
        if code == Exit.LISTEN:
            raise CannotListen(f"port {self.port} was taken meanwhile")
        raise ServerFailed(f"the server did not start ({code}): {self.output()}")

    def _end(self, end: Callable[[subprocess.Popen[bytes]], None]) -> None:
        process = self._process
        if process.poll() is None:
            end(process)
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise ServerFailed(f"the server did not end: {self.output()}") from None


class _HttpClock:
    def __init__(self, server: Server) -> None:
        self._server = server

    def advance(self, seconds: float) -> None:
        body = json.dumps({"advance_s": seconds}).encode()
        status, text = _ask(self._server.port, "POST", "clock", body)
        if status != 200:
            raise ServerFailed(f"the clock was not moved: {text}")


def _ask(port: int, method: str, name: str, body: bytes = b"") -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=_STOP_TIMEOUT_S)
    try:
        connection.request(method, f"/.strongroom/{name}", body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


def _faults(port: int) -> FaultControl:
    def ask(method: str, body: bytes) -> bytes:
        status, text = _ask(port, method, "faults", body)
        if status != 200:
            raise ServerFailed(f"the faults were not ordered: {text}")
        return text.encode()

    return FaultControl(ask)


def _with_ports(settings: Settings, ports: Ports) -> Settings:
    blob, queue, table, file = ports
    return replace(settings, blob_port=blob, queue_port=queue, table_port=table, file_port=file)


def _on_free_ports(port: int | None, start: Callable[[Ports], T]) -> T:
    """Start on the requested port or on free ones, and retry if another process takes one first.

    A requested port that is taken is refused at once.
    """
    for attempt in range(_PORT_TRIES):
        try:
            return start((port or free_port(), free_port(), free_port(), free_port()))
        except CannotListen:
            if attempt == _PORT_TRIES - 1 or (port is not None and not is_free(port)):
                raise
    raise AssertionError("the last attempt returns or raises")
