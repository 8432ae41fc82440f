"""The addresses of the read API beneath `coordination`, and the acts there.

    GET  coordination                       all containers; ?container=NAME for one
    GET  coordination?store=NAME            a further store
    POST coordination/gates/NAME/open       the body is the payload, as JSON, or empty
    POST coordination/gates/NAME/rearm
    POST coordination/locks/NAME/break      ?kind=lock (or election, semaphore, rwlock)

A GET takes `after` and `limit` for pages, and `change` and `wait_s` to wait for a change. An act
takes `container` or `store`, and the header If-Match with the `state` that was seen. NAME is
percent-encoded as one segment; `-?name=NAME` is for names that no browser can send there, like
`..`. Lives here: parameters, and errors as refusals. Must not live here:
who asks (servers/console/viewers.py), what is read or done (coordination_view.py).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast, get_args
from urllib.parse import unquote

import msgspec

from strongroom.console.access import Access
from strongroom.console.coordination_view import (
    ChangeAwaited,
    CoordinationView,
    NotForViewer,
    Seen,
    Wanted,
    until_changed,
)
from strongroom.console.record_pages import PAGE_MAX, PageOf
from strongroom.coordination.errors import (
    BadName,
    ChangedSince,
    CoordinationError,
    CorruptRecord,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.schema.names import key_of
from strongroom.servers.console.api.coordination import (
    PAYLOAD_BYTES_MAX,
    BreakAct,
    Coordination,
    GateAct,
    Kind,
    StoreRecords,
)
from strongroom.servers.console.api.parts import MountedRequest
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.viewers import Viewer

WAIT_S_MAX: Final = 30
READS_MAX: Final = 16
"""So many reads of one viewer are in progress or wait for a change at a time."""
_READ: Final = frozenset({"container", "store", "after", "limit", "change", "wait_s"})
_ACT: Final = frozenset({"container", "store", "kind", "name"})
_CONTAINER: Final = re.compile(r"[$a-z0-9-]{1,63}")
_TEXT_CHARS_MAX: Final = 256
_KINDS: Final = get_args(Kind)

Document = Coordination | StoreRecords | GateAct | BreakAct


class CoordinationPart:
    """Answers the requests beneath `coordination`; see `MountedPart`.

    Arguments:
        wall_ticks: returns the current wall time.
        is_stopping: whether the server is about to end, so that no answer waits for a change.
    """

    body_bytes_max = PAYLOAD_BYTES_MAX

    def __init__(
        self,
        view: CoordinationView,
        wall_ticks: Callable[[], int],
        is_stopping: Callable[[], bool],
    ) -> None:
        self.view = view
        self._wall_ticks, self._is_stopping = wall_ticks, is_stopping
        self._waiting: Counter[str] = Counter()

    async def answer(self, asked: MountedRequest) -> Document:
        """Return the document of the answer. Raises: ApiRefusal."""
        try:
            return await self._answer(asked)
        except NotForViewer as error:
            raise ApiRefusal(
                403, "NotPermitted", f"This needs {error.needs}.", error.needs
            ) from None
        except ChangedSince as error:
            raise ApiRefusal(412, "Changed", f"{error}.") from None
        except (BadName, Unsupported) as error:
            raise ApiRefusal(400, "InvalidInput", f"{error}.") from None
        except CorruptRecord as error:
            raise ApiRefusal(409, "UnreadableRecord", f"{error}.") from None
        except (StoreUnavailable, StoreRefused, CoordinationError) as error:
            raise ApiRefusal(503, "StoreUnavailable", f"{error}.") from None

    async def _answer(self, asked: MountedRequest) -> Document:
        if not asked.path:
            if asked.method != "GET":
                raise ApiRefusal(405, "WrongMethod", "Allowed: GET.")
            return await self._read(asked)
        parts = asked.path.removeprefix("/").split("/")
        if len(parts) != 3 or (parts[0], parts[2]) not in _ACTS:
            raise ApiRefusal(
                404, "NotFound", "There are gates/NAME/open, gates/NAME/rearm and locks/NAME/break."
            )
        if asked.method != "POST":
            raise ApiRefusal(405, "WrongMethod", "Allowed: POST.")
        return await self._act(asked, _name(parts[1], asked.query), parts[2])

    def _access(self, viewer: Viewer) -> Access:
        label = f"{viewer.name} (console)"
        return Access(viewer.claim, viewer.is_operator, label, self._wall_ticks)

    async def _read(self, asked: MountedRequest) -> Document:
        query = asked.query
        _check_names(query, _READ)
        with self._one_more(f"{asked.viewer.kind} {asked.viewer.name}"):
            return await self._read_page(asked)

    @contextmanager
    def _one_more(self, viewer: str) -> Iterator[None]:
        """Count a read of this viewer while the block runs. Raises: ApiRefusal: too many wait."""
        if self._waiting[viewer] >= READS_MAX:
            raise ApiRefusal(429, "TooManyRequests", f"{READS_MAX} reads are waiting already.")
        self._waiting[viewer] += 1
        try:
            yield
        finally:
            self._waiting[viewer] -= 1
            if not self._waiting[viewer]:
                del self._waiting[viewer]

    async def _read_page(self, asked: MountedRequest) -> Document:
        query = asked.query
        page = PageOf(_text(query, "after"), _number(query, "limit", PAGE_MAX, 1, PAGE_MAX))
        change, wait_s = _text(query, "change"), _number(query, "wait_s", 0, 0, WAIT_S_MAX)
        access, store = self._access(asked.viewer), query.get("store")
        until = ChangeAwaited(change, wait_s, self._is_stopping)
        if store is None:
            wanted = Wanted(_container(query), page)
            return await until_changed(lambda: self.view.containers(access, wanted), until)
        try:
            return await until_changed(lambda: self.view.store(access, store, page), until)
        except KeyError:
            raise _no_store(store) from None

    async def _act(self, asked: MountedRequest, name: str, act: str) -> Document:
        query, access = asked.query, self._access(asked.viewer)
        _check_names(query, _ACT)
        store, container = query.get("store"), _container(query)
        if (store is None) is (container is None):
            raise ApiRefusal(400, "InvalidQuery", "Name either ?container= or ?store=.")
        key_of("lock", name)  # a name that cannot be one is refused before anything is asked
        seen = Seen(container or "", store, name, _state(asked.if_match))
        try:
            if act == "open":
                return await self.view.open_gate(access, seen, _payload(asked.body))
            if act == "rearm":
                return await self.view.rearm_gate(access, seen)
            kind = query.get("kind", "lock")
            if kind not in _KINDS:
                raise ApiRefusal(400, "InvalidQuery", f"kind is one of {', '.join(_KINDS)}.")
            return await self.view.break_hold(access, seen, cast("Kind", kind))
        except KeyError:
            raise _no_store(store or "") from None


_ACTS: Final = frozenset({("gates", "open"), ("gates", "rearm"), ("locks", "break")})


def _no_store(name: str) -> ApiRefusal:
    return ApiRefusal(404, "NotFound", f"No store is called {name[:_TEXT_CHARS_MAX]!r}.")


def _name(segment: str, query: Mapping[str, str]) -> str:
    given = query.get("name")
    if given is not None:
        if segment != "-":
            raise ApiRefusal(400, "InvalidQuery", "With ?name=, the segment is a hyphen.")
        return given
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise ApiRefusal(400, "InvalidName", "The name is not valid UTF-8.") from None


def _check_names(query: Mapping[str, str], known: frozenset[str]) -> None:
    unknown = sorted(set(query) - known)
    if unknown:
        there = ", ".join(sorted(known))
        raise ApiRefusal(400, "InvalidQuery", f"Parameters are {there}, not {unknown[0][:40]!r}.")


def _text(query: Mapping[str, str], name: str) -> str:
    text = query.get(name, "")
    if len(text) > _TEXT_CHARS_MAX:
        raise ApiRefusal(400, "InvalidQuery", f"{name} has at most {_TEXT_CHARS_MAX} characters.")
    return text


def _number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and least <= int(text) <= most):
        raise ApiRefusal(400, "InvalidQuery", f"{name} is a number from {least} to {most}.")
    return int(text)


def _container(query: Mapping[str, str]) -> str | None:
    name = query.get("container")
    if name is not None and not _CONTAINER.fullmatch(name):
        raise ApiRefusal(400, "InvalidQuery", "container is no name of a container.")
    return name


def _state(if_match: str | None) -> str | None:
    """Return the state in an If-Match header; None = any state."""
    if if_match is None or if_match == "*":
        return None
    if len(if_match) > _TEXT_CHARS_MAX or not re.fullmatch(r'"[^"]*"', if_match):
        raise ApiRefusal(400, "InvalidHeader", 'If-Match is *, or one "state" in quotes.')
    return if_match[1:-1]


def _payload(body: bytes) -> Any:
    """Return the JSON of a body; None for an empty one."""
    if len(body) > PAYLOAD_BYTES_MAX:
        raise ApiRefusal(413, "BodyTooLarge", f"A payload has at most {PAYLOAD_BYTES_MAX} bytes.")
    if not body:
        return None
    try:
        msgspec.json.decode(body)  # refuses NaN, and what is nested too deep
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ApiRefusal(400, "InvalidBody", "The body is the gate's payload, as JSON.") from None
