"""The read API: from a request to a document.

    match -> limits -> who asks -> what it needs -> parameters -> document -> what may be seen

Lives here: this order. Must not live here: the endpoints (table.py). A refusal is a document too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from strongroom.errors.core import StorageError
from strongroom.limits import KIB
from strongroom.servers.console.api.documents import Problem, ProblemDetail, Who
from strongroom.servers.console.api.parts import MountedPart, MountedRequest
from strongroom.servers.console.api.rates import RateLimit
from strongroom.servers.console.api.table import NUMBER, PREFIX, TABLE, EndpointNeeds, Row
from strongroom.servers.console.marks import Mark, shown
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.viewers import (
    ACCOUNT_KEY,
    NOBODY,
    OPERATOR_NEEDED,
    Viewer,
    Viewers,
)
from strongroom.wire.core.http import Request, Response

OPERATION: Final = "console"
"""The operation of these requests in metrics; the console's figures leave it out."""
_QUERY_CHARS_MAX: Final = 2 * KIB
_BODY_BYTES_MAX: Final = 8 * KIB
_NUMBER_CHARS_MAX: Final = 15
_JSON: Final = "application/json"


class ApiRequest(NamedTuple):
    """A request to one endpoint.

    Attributes:
        viewer: None without a credential.
        number: of the path; 0 without one.
        query: the parameters, decoded.
    """

    request: Request
    viewer: Viewer | None
    number: int
    query: Mapping[str, str]
    body: bytes

    @property
    def known(self) -> Viewer:
        """The viewer of an endpoint that needs one."""
        assert self.viewer is not None
        return self.viewer


Answer = Callable[[ApiRequest], Awaitable[msgspec.Struct]]


@dataclass(frozen=True, slots=True)
class ReadApi:
    """Answers requests below PREFIX.

    Attributes:
        answers: the function of each row that this server has, by the row's path.
        mounts: parts of other modules, by the first segment of their paths.
        now_s: a clock that does not step.
    """

    viewers: Viewers
    answers: Mapping[str, Answer]
    now_s: Callable[[], float]
    mounts: dict[str, MountedPart] = field(default_factory=dict)
    rates: RateLimit = field(default_factory=RateLimit)

    async def respond(self, request: Request) -> Response:
        try:
            document, visible = await self._document(request)
            response = _json(200, shown(document, visible))
        except ApiRefusal as refusal:
            response = _refused(refusal)
        except StorageError as error:  # of the body
            response = _refused(ApiRefusal(error.row.status, error.row.code, error.message))
        response.operation = OPERATION
        return response

    async def _document(self, request: Request) -> tuple[msgspec.Struct, frozenset[Mark]]:
        if len(request.query or "") > _QUERY_CHARS_MAX:
            raise ApiRefusal(400, "QueryTooLong", f"At most {_QUERY_CHARS_MAX} characters.")
        name, slash, rest = request.path.removeprefix(PREFIX).partition("/")
        mount = self.mounts.get(name)
        if mount is not None:
            return await self._mounted(mount, slash + rest, request)
        row, number = _matched(request)
        viewer = await self._viewer(request, row.needs)
        answer = self.answers.get(row.path)
        if answer is None:
            raise _unknown()
        query = _query(request.query, row.parameters)
        body = await _body(request, _BODY_BYTES_MAX if row.method == "POST" else 0)
        document = await answer(ApiRequest(request, viewer, number, query, body))
        return document, NOBODY if viewer is None else viewer.visible

    async def _mounted(
        self, mount: MountedPart, path: str, request: Request
    ) -> tuple[msgspec.Struct, frozenset[Mark]]:
        viewer = await self._viewer(request, EndpointNeeds.SIGN_IN)
        assert viewer is not None
        query = _query(request.query, None)
        query.pop("account", None)
        body = await _body(request, mount.body_bytes_max if request.method == "POST" else 0)
        if_match = request.headers.get("if-match")
        asked = MountedRequest(request.method, path, query, if_match, body, viewer)
        return await mount.answer(asked), viewer.visible

    async def _viewer(self, request: Request, needs: EndpointNeeds) -> Viewer | None:
        """Return who asks; None where nobody is asked for. Raises: ApiRefusal."""
        if needs is EndpointNeeds.ANYONE:
            self._count(f"peer {request.peer}")
            return None
        try:
            viewer = await self.viewers.of(request)
        except ApiRefusal:
            self._count(f"peer {request.peer}")
            raise
        self._count(f"{viewer.kind} {viewer.name}")
        _require(viewer, needs)
        return viewer

    def _count(self, name: str) -> None:
        if not self.rates.permits(name, self.now_s()):
            raise ApiRefusal(429, "TooManyRequests", "Ask less often: wait a second, then repeat.")


async def answer_who(asked: ApiRequest) -> Who:
    viewer = asked.known
    may_see = ["requests", "coordination"]
    if viewer.scope is not None:
        may_see.append("overview")
    if viewer.is_operator:
        may_see.append("server")
    return Who(
        kind=viewer.kind,
        account=viewer.account,
        name=viewer.name,
        is_operator=viewer.is_operator,
        may_see=tuple(sorted(may_see)),
        scope=viewer.scope,
    )


def _matched(request: Request) -> tuple[Row, int]:
    """Return the row of a request, and the number in its path. Raises: ApiRefusal."""
    path, number = request.path.removeprefix(PREFIX), 0
    head, slash, last = path.rpartition("/")
    if slash and last.isascii() and last.isdigit() and len(last) <= _NUMBER_CHARS_MAX:
        path, number = f"{head}/{NUMBER}", int(last)
    rows = [row for row in TABLE if row.path == path]
    if not rows or not request.path.startswith(PREFIX):
        raise _unknown()
    for row in rows:
        if row.method == request.method:
            return row, number
    allowed = ", ".join(row.method for row in rows)
    raise ApiRefusal(405, "WrongMethod", f"Allowed: {allowed}.")


def _unknown() -> ApiRefusal:
    known = ", ".join(row.path for row in TABLE)
    return ApiRefusal(404, "NotFound", f"Below {PREFIX} there are {known}.")


def _require(viewer: Viewer, needs: EndpointNeeds) -> None:
    if needs is EndpointNeeds.FIGURES and viewer.scope is None:
        raise ApiRefusal(
            403,
            "AccountKeyNeeded",
            "The figures of an account are for its key, and those of the server for an operator.",
            ACCOUNT_KEY,
        )
    if needs is EndpointNeeds.OPERATOR and not viewer.is_operator:
        raise ApiRefusal(403, "OperatorNeeded", "This is for operators.", OPERATOR_NEEDED)


def _query(text: str | None, known: tuple[str, ...] | None) -> dict[str, str]:
    """Return the parameters, each at most once. Raises: ApiRefusal.

    Arguments:
        known: the names that it may have; None = any.
    """
    try:
        pairs = parse_qsl(text or "", keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise ApiRefusal(400, "InvalidQuery", "The query cannot be read.") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise ApiRefusal(400, "InvalidQuery", "A parameter is given more than once.")
    unknown = sorted(set(parameters).difference(known)) if known is not None else []
    if unknown:
        there = ", ".join(known or ()) or "none"
        shown_name = unknown[0][:40]
        raise ApiRefusal(400, "InvalidQuery", f"There is no {shown_name!r}; known: {there}.")
    return parameters


async def _body(request: Request, bytes_max: int) -> bytes:
    if bytes_max:
        return await request.body.read_all(bytes_max)
    if request.body.size_bytes != 0:
        raise ApiRefusal(400, "BodyNotExpected", "This request has no body.")
    return b""


def _json(status: int, document: msgspec.Struct) -> Response:
    body = msgspec.json.encode(document) + b"\n"
    return Response(status, [("Content-Type", _JSON)], body, len(body))


def _refused(refusal: ApiRefusal) -> Response:
    detail = ProblemDetail(code=refusal.code, text=refusal.text, needs=refusal.needs)
    response = _json(refusal.status, Problem(error=detail))
    if refusal.status == 429:
        response.headers.append(("Retry-After", "1"))
    return response


def refused_by_rule(status: int, rule: str, text: str) -> Response:
    """Return the answer of a request that a rule of origin.py refuses."""
    code = f"Refused{rule.title().replace(' ', '')}"
    response = _refused(ApiRefusal(status, code, text))
    response.operation = OPERATION
    return response
