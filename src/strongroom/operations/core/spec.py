"""The declaration of an operation: the structure of every row of operations/*.py.

Plain frozen data. A rule that would need code in a declaration belongs in semantics/.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from strongroom.auth.authorize import Permission
from strongroom.enums import FastHashEnum
from strongroom.errors.core import ErrorCode
from strongroom.operations.core import defaults
from strongroom.services.core.calls import Call, Rule
from strongroom.services.core.runner import Services
from strongroom.wire.core.http import BodyReader, Headers, Request
from strongroom.wire.core.path import SECONDARY, UrlTarget
from strongroom.wire.core.query import Query


class Resource(FastHashEnum):
    """The kind of resource that a URL names, by the depth of its path."""

    SERVICE = "/"
    CONTAINER = "/{container}"
    BLOB = "/{container}/{blob}"
    DATA_LAKE = "/{filesystem}/{path}"
    """Any URL whose query or headers show a request for the Data Lake (dfs) service."""
    QUEUE = "/{queue}"
    MESSAGES = "/{queue}/messages"
    MESSAGE = "/{queue}/messages/{messageId}"
    TABLES = "/Tables"
    TABLE_NAMED = "/Tables('{table}')"
    TABLE = "/{table}"
    """Also `/{table}()`."""
    ENTITY = "/{table}(PartitionKey='{partitionKey}',RowKey='{rowKey}')"
    BATCH = "/$batch"
    SHARE = "/{share}"
    DIRECTORY = "/{share}/{directory}"
    """Also the share's root, whose path is empty."""
    FILE = "/{share}/{path}"
    ANY = "/{any}"
    """Any URL, without credentials: the preflight requests of browsers."""


class When(msgspec.Struct, frozen=True):
    """A header or query parameter (`?name`) that distinguishes operations on the same URL.

    It must be present, and equal `value` in any case, unless `value` is None.
    """

    name: str
    value: str | None = None


class Field(msgspec.Struct, frozen=True):
    """One field of an operation's input, and the headers and query parameters that it is read from.

    A field that only refuses requests has the name "".
    """

    name: str
    read: Callable[[Request, Query], Any]
    headers: tuple[str, ...] = ()
    query: tuple[str, ...] = ()


class Defaults(msgspec.Struct, frozen=True):
    """The input of a request that sends none of the headers and parameters of an operation's
    fields.

    Most requests send none, so this input is made once. `values` are those of the fields; `input`
    is made of them. It is None if the operation takes a document.
    """

    headers: frozenset[str]
    query: frozenset[str]
    values: dict[str, Any]
    input: Any


class BodyKind(msgspec.Struct, frozen=True):
    """The kind of a request's body: a document, or a stream that the service reads itself.

    Attributes:
        name: the field of the input that a document becomes.
        parse: reads the document, in steps if it may be long; None = the body is a stream.
        max_bytes: the maximum length of the document.
        receipt: returns the field `received` from the document's bytes, for operations that verify
            them by digests.
        unframe: returns the content of a structured message, given the content's length; None = the
            operation takes no structured message.
    """

    name: str = ""
    parse: Callable[[bytes], Any] | None = None
    max_bytes: int = 0
    receipt: Callable[[bytes], Any] | None = None
    unframe: Callable[[BodyReader, int], BodyReader] | None = None


class Returned(msgspec.Struct, frozen=True):
    """One response header: `of` takes the result and returns the text, or None to omit the
    header."""

    header: str
    of: Callable[[Any], str | None]


class Origin(msgspec.Struct, frozen=True):
    """The parts of a request that its answer may repeat: query, headers and address, as they were
    sent.

    Arguments:
        host: the value of the Host header.
        target: the target of the request's URL; for a part of a batch, that of the batch's URL.
    """

    query: Query
    headers: Headers
    host: str
    tls: bool
    target: UrlTarget

    @property
    def endpoint(self) -> str:
        """The endpoint's URL as the client knows it, with a slash at its end. Few answers contain
        it."""
        scheme = "https" if self.tls else "http"
        target = self.target
        secondary = SECONDARY if target.secondary else ""
        prefix = "" if target.host_style else f"{target.account}{secondary}/"
        return f"{scheme}://{self.host or 'localhost'}{target.mount}/{prefix}"


class Content(msgspec.Struct, frozen=True):
    """The body of an answer.

    If `size_bytes` is None, the body is chunked. `release` is called when it has been sent. If
    `pieces` is an iterator of bytes, they are joined before the answer begins.
    """

    pieces: Any
    size_bytes: int | None = None
    release: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the service, complete.

    Attributes:
        name: Microsoft's name; variants in brackets.
        id: the SDKs' name for it, as in the transcript under docs/operations/.
        methods: the verbs; `resource` how deep the URL goes; `restype` and `comp` of the query.
        when: headers and parameters that select it among operations with the same URL; the first
            match in the order of declaration is taken.
        input: the type that `accepts` and `body` fill; or a function that makes it, in steps if
            that may take long.
        rule: lease, conditions and existence, as the runner checks them. Its purpose decides what
            the operation may do on a full disk.
        snapshots: parses the parameter `snapshot`, or `sharesnapshot` of files, into ticks; None =
            the URL may not name one.
        versions: the same of the parameter `versionid`.
        waits: whether the operation accepts `x-strongroom-wait`.
        success: the status, or a function of the result.
        returns: response headers. `extra_headers` returns further (name, value) pairs (metadata).
            `request_dependent_headers` returns those that depend on the request too, from (result,
            call, origin).
        content: the answer's body, from (result, call, origin).
        fails: the errors that only this operation answers; the common errors follow from the other
            attributes.
        run: the service function; None = not served yet (501), unless it has `parts`.
        parts: the operations that the requests of a batch may ask for; all requests of a batch ask
            for the same one. Empty = the body is no batch.
        defaults: the input of a request that sends none of the fields; None if the fields have no
            fixed defaults.
        refusal: the error of an operation that is not served, in a place that exists; None = 501
            with the operation's name, wherever it is.
        is_served: whether the server runs it.
    """

    name: str
    id: str
    methods: tuple[str, ...]
    resource: Resource
    permission: Permission
    restype: str | None = None
    comp: str | None = None
    when: tuple[When, ...] = ()
    input: Callable[..., Any] = lambda: None
    accepts: tuple[Field, ...] = ()
    body: BodyKind | None = None
    rule: Rule = Rule()  # noqa: RUF009 - frozen, and every operation without one shares it
    snapshots: Callable[[str], int] | None = None
    versions: Callable[[str], int] | None = None
    waits: bool = False
    success: int | Callable[[Any], int] = 200
    returns: tuple[Returned, ...] = ()
    extra_headers: Callable[[Any], tuple[tuple[str, str], ...]] | None = None
    request_dependent_headers: (
        Callable[[Any, Call[Any], Origin], tuple[tuple[str, str], ...]] | None
    ) = None
    content: Callable[[Any, Call[Any], Origin], Content] | None = None
    fails: tuple[ErrorCode, ...] = ()
    run: Callable[[Services, Call[Any]], Awaitable[Any]] | None = None
    parts: tuple[Operation, ...] = ()
    refusal: ErrorCode | None = None
    defaults: Defaults | None = field(init=False, default=None)
    is_served: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "defaults", _defaults(self))
        object.__setattr__(self, "is_served", self.run is not None or bool(self.parts))

    def writes(self) -> bool:
        """Whether the operation is refused on the secondary endpoint."""
        return not set(self.methods) <= {"GET", "HEAD", "OPTIONS"}


def _defaults(operation: Operation) -> Defaults | None:
    headers = frozenset(name for one in operation.accepts for name in one.headers)
    query = frozenset(name for one in operation.accepts for name in one.query)
    reads = [(one.name, one.read) for one in operation.accepts]
    values = defaults.values(reads, headers, query)
    if values is None:
        return None
    has_document = operation.body is not None and operation.body.parse is not None
    return Defaults(headers, query, values, None if has_document else operation.input(**values))
