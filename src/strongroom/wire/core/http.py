"""Request and Response: HTTP messages as values, with the bytes exactly as they were sent.

Header collections keep case, order and duplicates. Sockets and parsing are in servers/http/.
Source: RFC 9110 sections 5 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Protocol

import msgspec

from strongroom.values import FileSlice


class Headers:
    """Header fields in the order and case they were sent, with case-insensitive access.

    Arguments:
        fields: (name, value) pairs; values without surrounding white space, decoded as latin-1.
    """

    __slots__ = ("_first", "fields", "get", "has_none_of", "repeats")

    get: Callable[[str], str | None]
    """get(name) -> the first value of the field called `name` (lower case), or None. The
    dictionary's own method: it is called thirty times in a request."""
    has_none_of: Callable[[Collection[str]], bool]
    """has_none_of(names) -> whether no field of these names (lower case) was sent. As `get`."""
    repeats: Sequence[str]
    """The names (lower case) of the fields that were sent more than once."""

    def __init__(self, fields: Iterable[tuple[str, str]]) -> None:
        self.fields: tuple[tuple[str, str], ...] = tuple(fields)
        self._first = {name.lower(): value for name, value in self.fields}
        self.repeats: Sequence[str] = ()
        if len(self._first) < len(self.fields):
            self._first = {name.lower(): value for name, value in reversed(self.fields)}
            counts = Counter(name.lower() for name, _ in self.fields)
            self.repeats = [name for name, count in counts.items() if count > 1]
        self.get = self._first.get
        self.has_none_of = self._first.keys().isdisjoint

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def any_name_holds(self, text: str) -> bool:
        """Whether `text` (lower case, one line) is a part of some field's name."""
        return text in "\n".join(self._first)

    def lowered(self) -> Iterator[tuple[str, str]]:
        """(lower-case name, first value) of every field name."""
        return iter(self._first.items())


class BodyReader(Protocol):
    """A request body, which can be read at most once."""

    size_bytes: int | None
    """Content-Length, or None when the body is chunked."""

    @property
    def is_held_back(self) -> bool:
        """Whether the client sends it only after `100 Continue` (`Expect: 100-continue`)."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield chunks as they arrive. The first read sends `100 Continue`.

        Raises: StorageError (INCOMPLETE_BODY, REQUEST_TIMEOUT) when the client ends early or
            stalls.
        """
        ...

    async def read_all(self, max_bytes: int) -> bytes:
        """Return the whole body.

        Raises: StorageError REQUEST_BODY_TOO_LARGE, before reading more than `max_bytes`.
        """
        ...


class Request(msgspec.Struct):
    """One HTTP request.

    `target` is the request target exactly as sent (`/acct/c/b%2Fx?comp=list`), latin-1. `path` and
    `query` are its two parts, still encoded, without the question mark. `query` is None when there
    is none. In an absolute target (`http://host/acct/c`) the path begins after the authority.
    `mount` is the prefix of the path that selects a service on a shared port (`/blob`), else "".
    The signature covers the mount too. `peer` is the client's address without port. `request_id` is
    the x-ms-request-id of its answer, "" before one was given. If it `is_forwarded`, another
    gateway has received it from the client, and has proven to be one.
    """

    method: str
    target: str
    headers: Headers
    body: BodyReader
    peer: str = "127.0.0.1"
    tls: bool = False
    path: str = ""
    query: str | None = None
    mount: str = ""
    request_id: str = ""
    is_forwarded: bool = False
    is_disconnected: bool = False
    _disconnect_callbacks: list[Callable[[], None]] | None = None

    def __post_init__(self) -> None:
        path, mark, query = self.target.partition("?")
        self.path = path if path.startswith(("/", "*")) else _path_of_absolute(path)
        self.query = query if mark else None

    @property
    def resource_path(self) -> str:
        """The path without its mount, as sent. It begins with the account, unless the host names
        the account."""
        return self.path.removeprefix(self.mount)

    @property
    def host(self) -> str:
        """The host that the client named, "" without one."""
        return self.headers.get("host") or ""

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the client disconnects before its answer (at once if it has
        already).

        A handler that waits for long uses it to stop waiting. `is_disconnected` is true from then
        on. A client that only closed its sending side counts as disconnected, but still gets the
        answer.
        """
        if self.is_disconnected:
            callback()
        elif self._disconnect_callbacks is None:
            self._disconnect_callbacks = [callback]
        else:
            self._disconnect_callbacks.append(callback)

    def mark_disconnected(self) -> None:
        """Run the callbacks once."""
        self.is_disconnected = True
        callbacks, self._disconnect_callbacks = self._disconnect_callbacks, None
        for callback in callbacks or ():
            callback()


def _path_of_absolute(path: str) -> str:
    """The path in an absolute target; other text is unchanged. Source: RFC 9112, 3.2.2."""
    rest = _after_scheme(path)
    return path if rest is None else "/" + rest.partition("/")[2]


def authority_of_absolute(target: str) -> str | None:
    """The host, with its port, of an absolute target; None for any other target. Source: RFC 9112,
    3.2.2."""
    rest = None if target.startswith("/") else _after_scheme(target)
    if rest is None:
        return None
    return rest.partition("/")[0].partition("?")[0].rpartition("@")[2]


def _after_scheme(target: str) -> str | None:
    scheme, separator, rest = target.partition("://")
    return rest if separator and scheme.lower() in ("http", "https") else None


class Response(msgspec.Struct):
    """One HTTP response.

    `body` pieces are sent in order; `size_bytes` is their total length when it is known (None:
    chunked). `close` requests that the connection is closed afterwards. `finished` is called once
    when the body has been sent or abandoned, in every case (it releases pins). `operation` is the
    operation's name, for telemetry. `facts` is what the handler found out about the request; only
    the observers of its server read it.
    """

    status: int
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)
    body: bytes | AsyncIterable[bytes | FileSlice] = b""
    size_bytes: int | None = None
    reason: str | None = None
    close: bool = False
    finished: Callable[[], None] | None = None
    operation: str = ""
    facts: object = None
