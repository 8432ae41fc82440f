"""The token in an HTTP header, and the middleware that makes a web application refuse an old one.

    Fence: name="go-live%20now"; fence=7

    requests.put(url, data, headers=held.guard.headers())        # the holder
    app = FenceAsgi(app, sqlite_keeper("fences.db"), "invoices")  # the resource

The header has parameters `key=value`, separated by `;`. A value is a token of RFC 9110 or a quoted
string with `\\"` and `\\\\` in it. `name` is the lock's name, escaped as in names.py, so any text
is plain ASCII. `fence` is a decimal number from 0 to 2**63 - 1. Both are there once; other
parameters are ignored. Refusals are JSON. 400: the header cannot be read. 428: it is missing. 412:
a later fence was seen, or the fence is another lock's. 503: the keeper failed. Source: M.
Kleppmann, "How to do distributed locking" (fencing tokens); RFC 9110, 5.6; RFC 6585, 3. Must not
live here: remembering fences (keepers.py), sending requests.

The middleware promises that no request passes that arrives after a later fence was admitted. A
request that is running already is not stopped. Where that matters, the application uses the
admitted token in the transaction that changes its data (`Guards(environ[ENVIRON_KEY])`). Any client
that may send requests may send any fence. So this protects against late holders, not against
malicious ones.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from strongroom.coordination.errors import BadName, CoordinationError
from strongroom.coordination.guards.fencing import Fenced, FencedOut, Token
from strongroom.coordination.guards.keepers import FenceKeeper
from strongroom.coordination.schema.names import escape, unescape
from strongroom.coordination.schema.records import FENCE_MAX

log = logging.getLogger("strongroom.coordination")
HEADER: Final = "Fence"
ENVIRON_KEY: Final = "strongroom.fence"
"""Where the application finds the `Token` that was admitted: in the environ, in the scope."""
UNGUARDED: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing (RFC 9110, 9.2.1), and need no fence."""

_HEADER_MAX: Final = 1024
_PARAMETER: Final = re.compile(
    r"[ \t]*(?P<key>[A-Za-z][A-Za-z0-9_-]*)="
    r"(?:(?P<token>[A-Za-z0-9!#$%&'*+.^_`|~-]+)|\"(?P<quoted>(?:[^\"\\\x00-\x1f\x7f]|\\[\"\\])*)\")"
    r"[ \t]*(?:;|$)"
)
_NUMBER: Final = re.compile(r"[0-9]{1,19}")


class BadFence(CoordinationError, ValueError):
    """A Fence header that cannot be read; the message says what is wrong."""


def header_of(held: Fenced) -> str:
    """Return the value of the header; the hold is not checked. Raises: BadName."""
    return f'name="{escape(held.name)}"; fence={held.fence}'


def parse_header(text: str) -> Token:
    """Return the token in a header's value.

    Raises:
        BadFence: the value is not a token.
    """
    if len(text) > _HEADER_MAX:
        raise BadFence(f"the {HEADER} header has more than {_HEADER_MAX} characters")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        parameter = _PARAMETER.match(text, at)
        if parameter is None:
            raise BadFence(
                f"the {HEADER} header cannot be read from character {at + 1} on;"
                ' it should look like: name="invoices"; fence=7'
            )
        key, at = parameter["key"].lower(), parameter.end()
        if key in found:
            raise BadFence(f"the {HEADER} header has {key} twice")
        quoted = parameter["quoted"]
        found[key] = parameter["token"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return _token(found.get("name"), found.get("fence"))


def _token(name: str | None, fence: str | None) -> Token:
    if name is None or fence is None:
        missing = "name" if name is None else "fence"
        raise BadFence(f"the {HEADER} header has no {missing}")
    if not _NUMBER.fullmatch(fence) or int(fence) > FENCE_MAX:
        raise BadFence(f"the fence in the {HEADER} header is no number from 0 to {FENCE_MAX}")
    try:
        return Token(unescape(name), int(fence))
    except BadName as error:
        raise BadFence(f"the name in the {HEADER} header: {error}") from error


def check_answer(held: Fenced, status: int, body: bytes) -> None:
    """Raise if an answer says that the resource has seen a later holder.

    Arguments:
        held: the hold whose token was sent.
        status, body: of the answer.

    Raises:
        FencedOut: the request changed nothing; the hold is over.
    """
    if status != 412:
        return
    try:
        document = json.loads(body)
        seen = document["seen"] if document["type"] == _REFUSED else None
    except (ValueError, TypeError, KeyError):
        return  # a 412 of another precondition
    if type(seen) is int:
        raise FencedOut(held.name, held.fence, seen, "the server")


_REFUSED: Final = "about:blank#fenced-out"


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    reason: str
    body: bytes

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("Content-Type", "application/problem+json"),
            ("Content-Length", str(len(self.body))),
        ]


def _refusal(
    status: int,
    reason: str,
    detail: str,
    kind: str = "about:blank",
    more: Mapping[str, str | int] = MappingProxyType({}),
) -> _Refusal:
    document = {"type": kind, "title": reason, "status": status, "detail": detail, **more}
    return _Refusal(status, reason, json.dumps(document).encode())


class _FenceCheck:
    """The checks that WSGI and ASGI share, from a method and headers to a token or a refusal."""

    def __init__(self, keeper: FenceKeeper, name: str | None, required: bool) -> None:
        self.keeper, self._name, self._required = keeper, name, required

    def token_of(self, method: str, values: list[str]) -> Token | _Refusal | None:
        """Return the token to admit, or a refusal; None if no token is needed."""
        if method in UNGUARDED:
            return None
        if not values:
            if not self._required:
                return None
            detail = f'send the header {HEADER}: name="..."; fence=... of the lock that you hold'
            return _refusal(428, "Precondition Required", detail)
        if len(values) > 1:
            return _refusal(400, "Bad Request", f"there is more than one {HEADER} header")
        try:
            token = parse_header(values[0])
        except BadFence as error:
            return _refusal(400, "Bad Request", str(error))
        if self._name is not None and token.name != self._name:
            detail = f"this is guarded by {self._name!r}, not by {token.name!r}"
            return _refusal(412, "Precondition Failed", detail)
        return token

    def admit(self, token: Token) -> _Refusal | None:
        """Return the keeper's refusal of a token; None if it admitted the token."""
        try:
            seen = self.keeper.admit(token.name, token.fence)
        except CoordinationError as error:
            return _refusal(503, "Service Unavailable", f"no fence can be admitted: {error}")
        except Exception:
            # An error of the database's driver. Its text is for the log only: it may name the host.
            log.exception("the keeper of fences failed; the request is refused")
            return _refusal(503, "Service Unavailable", "no fence can be admitted now")
        if seen <= token.fence:
            return None
        refused = FencedOut(token.name, token.fence, seen, "this server")
        return _refusal(
            412,
            "Precondition Failed",
            f"{refused}; nothing was done",
            _REFUSED,
            {"name": token.name, "fence": token.fence, "seen": seen},
        )


Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class FenceWsgi:
    """WSGI middleware (PEP 3333): requests that change something need a fence that is not old.

    Arguments:
        app: the guarded application; it finds the admitted `Token` under `ENVIRON_KEY`.
        keeper: remembers the highest fences; see keepers.py for what each one promises.
        name: of the lock that guards this application; None: the one that the header names.
        required: refuse requests without the header (428). False: they pass unguarded.
    """

    def __init__(
        self, app: WsgiApp, keeper: FenceKeeper, name: str | None = None, required: bool = True
    ) -> None:
        self._app, self._check = app, _FenceCheck(keeper, name, required)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        value = environ.get(f"HTTP_{HEADER.upper()}")
        found = self._check.token_of(
            str(environ["REQUEST_METHOD"]), [] if value is None else [str(value)]
        )
        if isinstance(found, Token):
            environ[ENVIRON_KEY] = found
            found = self._check.admit(found)
        if found is None:
            return self._app(environ, start_response)
        start_response(f"{found.status} {found.reason}", found.headers)
        return [found.body]


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class FenceAsgi:
    """ASGI middleware (version 3); see `FenceWsgi`. WebSockets pass unguarded.

    Arguments: as of `FenceWsgi`; the application finds the `Token` in its scope.
    """

    def __init__(
        self, app: AsgiApp, keeper: FenceKeeper, name: str | None = None, required: bool = True
    ) -> None:
        self._app, self._check = app, _FenceCheck(keeper, name, required)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        header_name = HEADER.lower().encode()
        values = [value.decode("latin-1") for key, value in scope["headers"] if key == header_name]
        found = self._check.token_of(str(scope["method"]), values)
        if isinstance(found, Token):
            scope = {**scope, ENVIRON_KEY: found}
            found = await self._admitted(found)
        if found is None:
            await self._app(scope, receive, send)
            return
        headers = [(key.lower().encode(), text.encode()) for key, text in found.headers]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.body})

    async def _admitted(self, token: Token) -> _Refusal | None:
        if self._check.keeper.blocks:
            return await asyncio.to_thread(self._check.admit, token)
        return self._check.admit(token)
