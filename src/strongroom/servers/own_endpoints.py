"""The server's own endpoints, below `/.strongroom/`: health, metrics, reset, the clock and the
faults of a test server.

Lives here: their answers. Must not live here: what they measure (telemetry.py), what a reset needs
and does (resets.py). An account name cannot contain a dot, so these paths hide no resource of
Azure's protocol. The endpoints reveal no secret, and need no key but for a reset. The rule in
own_hosts.py decides which `Host` and `Origin` headers they accept. Health is answered under any
Host: it changes nothing, and load balancers use names of their own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from strongroom import __version__
from strongroom.errors.core import StorageError
from strongroom.servers.faults import FaultInjector, FaultPlan
from strongroom.servers.own_hosts import OwnHosts
from strongroom.values import Health, datetime_of
from strongroom.wire.core.http import Request, Response

PREFIX: Final = "/.strongroom/"
_HEALTH: Final = f"{PREFIX}health"
ADVANCE_S_MAX: Final = 20 * 365 * 24 * 3600.0
_BODY_BYTES_MAX: Final = 1024
_PLAN_BYTES_MAX: Final = 256 * 1024
_JSON: Final = "application/json"
# The answer shows a year with four digits.
_LAST_YEAR: Final = 9000


Facts = Mapping[str, str | bool | Mapping[str, int]]
"""The content of an answer, as JSON."""
AnswerReset = Callable[[Request], Awaitable[tuple[int, Facts]]]


class ClockControl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /.strongroom/clock."""

    advance_s: float


class OwnEndpoints(msgspec.Struct, frozen=True):
    """Answers requests below `PREFIX`.

    Attributes:
        is_ready: returns False as soon as the server begins to drain.
        health: returns the engine's health within a bounded time.
        is_durable: whether acknowledged writes outlive the process.
        metrics: returns the metrics' text and its media type.
        metrics_anywhere: whether clients on other machines may read the metrics.
        now: returns store time in ticks.
        advance: moves store time; None on a server without a test clock.
        hosts: the host names by which clients may reach these endpoints.
        faults: injects faults for tests; None on a server without a test clock.
        resets: removes everything, and returns status and content of the answer; None on a server
            that is not to be reset.
        is_damaged: whether the scrub knows of damaged data.
        are_bodies_away: whether the folder or pool of long bodies cannot be used.
        console_url: returns where the console is; "" = there is none.
    """

    is_ready: Callable[[], bool]
    health: Callable[[], Awaitable[Health]]
    is_durable: bool
    metrics: Callable[[], tuple[bytes, str]]
    metrics_anywhere: bool
    now: Callable[[], Awaitable[int]]
    advance: Callable[[float], None] | None
    hosts: OwnHosts
    faults: FaultInjector | None = None
    resets: AnswerReset | None = None
    is_damaged: Callable[[], bool] = lambda: False
    console_url: Callable[[], str] = str
    are_bodies_away: Callable[[], bool] = lambda: False

    async def respond(self, request: Request) -> Response:
        """Return the answer: 403 for a refused `Host` or `Origin` header, 404 for an unknown
        path."""
        refusal = self._refusal(request)
        response = await self._endpoint(request) if refusal is None else _problem(403, refusal)
        response.headers.append(("Cache-Control", "no-store"))
        response.operation = "own endpoint"
        return response

    def _refusal(self, request: Request) -> str | None:
        if request.path == _HEALTH:
            return None
        headers = request.headers
        return self.hosts.refusal(request.method, headers.get("host"), headers.get("origin"))

    async def _endpoint(self, request: Request) -> Response:
        name = request.path.removeprefix(PREFIX)
        if name == "health":
            return await self._health(request)
        if name == "metrics":
            return self._metrics(request)
        if name == "clock":
            return await self._clock(request)
        if name == "faults":
            return await self._faults(request)
        if name == "reset":
            return await self._reset(request)
        names = ("health", "metrics", "clock", "faults", "reset")
        known = ", ".join(f"{PREFIX}{name}" for name in names)
        return _problem(404, f"There are {known}.")

    async def _health(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _wrong_method("GET, HEAD")
        engine = await self.health()
        if engine in (Health.STOPPED, Health.STALLED):
            status = engine.value
        else:
            status = "ready" if self.is_ready() else "draining"
        facts: dict[str, str | bool | Mapping[str, int]] = {
            "status": status,
            "durable": self.is_durable,
            "version": __version__,
        }
        if engine is Health.FULL:
            # Still 200: reads and deletes are served, and no other server has this data.
            facts["disk"] = "full"
        if self.is_damaged():
            # Still 200, too: all that is not damaged is served.
            facts["damage"] = "found"
        if self.are_bodies_away():
            # And still 200: other gateways have the same place, so none would do better.
            facts["bodies"] = "away"
        console_url = self.console_url()
        if console_url:
            facts["console"] = console_url
        return _json(200 if status == "ready" else 503, facts)

    def _metrics(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _wrong_method("GET, HEAD")
        if not (self.metrics_anywhere or _is_local(request.peer)):
            return _problem(403, "Metrics are for this machine only; see --metrics-anywhere.")
        body, media_type = self.metrics()
        return Response(200, [("Content-Type", media_type)], body, len(body))

    async def _clock(self, request: Request) -> Response:
        if self.advance is None:
            return _problem(404, "This server was not started with --test-clock.")
        if request.method == "POST":
            refusal = await self._move(request, self.advance)
            if refusal is not None:
                return refusal
        elif request.method not in ("GET", "HEAD"):
            return _wrong_method("GET, HEAD, POST")
        return _json(200, {"store_time": datetime_of(await self.now()).isoformat()})

    async def _faults(self, request: Request) -> Response:
        if self.faults is None:
            return _problem(404, "This server was not started with --test-clock.")
        if request.method == "PUT":
            try:
                body = await request.body.read_all(_PLAN_BYTES_MAX)
                self.faults.set_plan(msgspec.json.decode(body, type=FaultPlan))
            except StorageError as error:
                return _problem(error.row.status, error.message)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                example = '{"rules": [{"operation": "Put Blob", "fault": "busy", "times": 2}]}'
                return _problem(400, f"The body must be like {example}: {error}")
        elif request.method == "DELETE":
            self.faults.set_plan(FaultPlan())
        elif request.method not in ("GET", "HEAD"):
            return _wrong_method("GET, HEAD, PUT, DELETE")
        body = msgspec.json.encode({"plan": self.faults.plan, "counts": self.faults.counts})
        return Response(200, [("Content-Type", _JSON)], body + b"\n", len(body) + 1)

    async def _reset(self, request: Request) -> Response:
        if self.resets is None:
            return _problem(404, "This server was not started with --allow-reset.")
        if request.method != "POST":
            return _wrong_method("POST")
        try:
            await request.body.read_all(_BODY_BYTES_MAX)
        except StorageError as error:
            return _problem(error.row.status, error.message)
        return _json(*await self.resets(request))

    async def _move(self, request: Request, advance: Callable[[float], None]) -> Response | None:
        try:
            control = msgspec.json.decode(
                await request.body.read_all(_BODY_BYTES_MAX), type=ClockControl
            )
        except StorageError as error:
            return _problem(error.row.status, error.message)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _problem(400, f'The body must be like {{"advance_s": 15}}: {error}')
        if not 0 <= control.advance_s <= ADVANCE_S_MAX:
            return _problem(400, f"advance_s must lie between 0 and {ADVANCE_S_MAX:.0f}.")
        year = datetime_of(await self.now()).year
        if year + control.advance_s / (365 * 24 * 3600) > _LAST_YEAR:
            return _problem(400, f"The clock cannot be moved beyond the year {_LAST_YEAR}.")
        advance(control.advance_s)
        return None


def _is_local(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _json(status: int, facts: Facts) -> Response:
    body = msgspec.json.encode(facts) + b"\n"
    return Response(status, [("Content-Type", _JSON)], body, len(body))


def _problem(status: int, message: str) -> Response:
    return _json(status, {"error": message})


def _wrong_method(allowed: str) -> Response:
    response = _problem(405, f"Allowed: {allowed}.")
    response.headers.append(("Allow", allowed))
    return response
