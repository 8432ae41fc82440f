"""What a console costs the server: CPU time of a request without one, with one, with a tab open.

Five servers take turns: two without a console, one with it, two whose console somebody looks at.
The ratio of the two without one is the noise of the measure, and the others are compared with it.
The tab is a client that asks what the page asks, as often as it does (console/src/views/overview
and console/src/views/requests).
"""

import base64
import hashlib
import hmac
import http
import http.client
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.comparison import Slice, measure
from benchmarks.endpoint import ACCOUNT, ACCOUNT_KEY, BLOCK_BLOB, HOST, Endpoint
from benchmarks.engine import SCATTERED, Load, Step
from benchmarks.results import Row, ratio_of, row
from benchmarks.servers import STRONGROOM, Server, free_ports, strongroom_command
from benchmarks.turns import Turns
from benchmarks.workloads import CONTAINER, KIB, make_container, put_blob

SLICES: Final = 20
CONSOLE_MAX: Final = 1.02
TAB_MAX: Final = 1.05
_BLOBS: Final = 1000
_API: Final = "/.strongroom/console/v1/"
_VERSION: Final = "2025-11-05"
# As the page does: seconds between two requests of a view.
_OVERVIEW_S: Final = 2.5
_ROUNDS_OF_HISTORY: Final = 4
_TAIL_PAUSE_S: Final = 0.5
_TAIL_ROWS: Final = 500
NO_QUERY: Final[Mapping[str, str]] = {}


class Tab:
    """A tab of the console: it asks for one view while it is open.

    Arguments:
        port: of the console.
        view: asks once, and returns the seconds until it asks again.
    """

    def __init__(self, port: int, view: Callable[["Tab"], float]) -> None:
        self._port = port
        self._view = view
        self._tail = 0
        self._rounds = 0
        self._pause_s = 0.0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Look at the view during the block. The pauses go on from block to block."""
        ends = threading.Event()
        thread = threading.Thread(target=self._look, args=(ends,))
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _look(self, ends: threading.Event) -> None:
        while True:
            began = time.monotonic()
            if ends.wait(self._pause_s):
                self._pause_s = max(0.0, self._pause_s - (time.monotonic() - began))
                return
            self._pause_s = self._view(self)

    def overview(self) -> float:
        """Ask for the figures of now, and sometimes for those of the last hour."""
        self.ask("overview")
        if self._rounds % _ROUNDS_OF_HISTORY == 0:
            self.ask("history")
        self._rounds += 1
        return _OVERVIEW_S

    def requests(self) -> float:
        """Ask for the tail. A full answer is behind, so that the next one begins at the newest."""
        # The server is paused at the end of a slice, and a long poll would outlast it.
        query = {"limit": str(_TAIL_ROWS), "wait_s": "0", "after": str(self._tail)}
        told = self.ask("requests", query)
        self._tail = 0 if len(told["requests"]) == _TAIL_ROWS else told["newest"]
        return _TAIL_PAUSE_S

    def ask(self, name: str, query: Mapping[str, str] = NO_QUERY) -> Any:
        """Return a document of the read API. Raises: OSError for a refusal."""
        pairs = sorted(query.items())
        date, path = formatdate(usegmt=True), f"{_API}{name}"
        canonical = "".join(f"\n{key}:{value}" for key, value in pairs)
        signed = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{ACCOUNT}{path}{canonical}"
        text = "GET" + "\n" * 12 + signed
        mac = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        fields = {
            "x-ms-date": date,
            "x-ms-version": _VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}",
        }
        connection = http.client.HTTPConnection(HOST, self._port, timeout=120)
        try:
            target = "&".join(f"{key}={value}" for key, value in pairs)
            connection.request("GET", f"{path}?{target}", headers=fields)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise OSError(f"the console answered {answer.status}: {body[:200]!r}")
            return json.loads(body)
        finally:
            connection.close()


@dataclass
class _Side:
    """One of the servers that take turns."""

    name: str
    server: Server
    tab: Tab | None = None
    costs: list[float] = field(default_factory=list)

    def turn(self, step: Step, slice_s: float) -> Slice:
        endpoint = self.server.endpoint
        load = Load((step,), 1, slice_s, slice_s / 4, modulo=_BLOBS)
        with self.server.awake():
            if self.tab is None:
                return measure(self.server, endpoint, load, lambda report: report.steps[0].count)
            with self.tab.open():
                return measure(self.server, endpoint, load, lambda report: report.steps[0].count)


def console_cost(folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield the rows of a small GET and a small PUT."""
    sides = _sides(folder)
    try:
        for side in sides:
            side.server.start()
            make_container(side.server.endpoint)
            step = put_blob(side.server.endpoint, f"{CONTAINER}/c{SCATTERED}")
            side.server.endpoint.load(Load((step,), 4, 60, cycles_max=_BLOBS, modulo=_BLOBS))
            side.server.pause()
        rounds = Turns(turns.slice_s, SLICES, turns.warm_up_s)
        for name, make in (("GET", _get), ("PUT", _put)):
            for side in sides:
                side.costs.clear()
                side.turn(make(side.server.endpoint), rounds.warm_up_s)
            for side in rounds.of(sides):
                found = side.turn(make(side.server.endpoint), rounds.slice_s)
                side.costs.append(found.cpu_ms)
            yield from _rows(name, sides)
    finally:
        for side in sides:
            side.server.discard()


def _sides(folder: Path) -> tuple[_Side, ...]:
    ports = free_ports(3)
    servers = [_server(folder / f"console-{port}", ("--console-port", str(port))) for port in ports]
    return (
        _Side("none", _server(folder / "console-none", ("--no-console",))),
        _Side("none", _server(folder / "console-none-too", ("--no-console",))),
        _Side("a console", servers[0]),
        _Side("a tab at Overview", servers[1], Tab(ports[1], Tab.overview)),
        _Side("a tab at Requests", servers[2], Tab(ports[2], Tab.requests)),
    )


def _server(data: Path, flags: Sequence[str]) -> Server:
    def command(folder: Path, ports: list[int]) -> list[str]:
        return [*strongroom_command(folder, ports), *flags]

    return Server(STRONGROOM, command, data)


def _get(endpoint: Endpoint) -> Step:
    return endpoint.step("get", "GET", f"{CONTAINER}/c{SCATTERED}", 200)


def _put(endpoint: Endpoint) -> Step:
    path = f"{CONTAINER}/c{SCATTERED}"
    return endpoint.step("put", "PUT", path, 201, headers=BLOCK_BLOB, body=KIB)


def _rows(name: str, sides: Sequence[_Side]) -> Iterator[Row]:
    """Yield how many times the CPU time of a request without a console each side takes."""
    off, too, *watched = sides
    noise = ratio_of(too.costs, off.costs)
    assert noise is not None
    for side, bound in ((too, None), *((one, _bound(one)) for one in watched)):
        ratio = ratio_of(side.costs, off.costs)
        assert ratio is not None
        costs = tuple(tuple(round(one, 4) for one in each.costs) for each in (side, off))
        made = row(
            f"{name} 1 KiB, {side.name} : none", 1, "CPU ms/req",
            statistics.median(side.costs), statistics.median(off.costs),
            ratio=ratio, slices=(costs[0], costs[1]), other="without",
            note="" if bound is None else f"{ratio.median / noise.median:.3f}x none : none",
        )  # fmt: skip
        if bound is not None:
            reached = ratio.median / noise.median <= bound
            text = f"<= {bound:g}x none : none"
            made = msgspec.structs.replace(made, reached=reached, target=text)
        yield made


def _bound(side: _Side) -> float:
    return CONSOLE_MAX if side.tab is None else TAB_MAX
