"""The input of authentication: a request's parts exactly as sent, and the resource they address.

The wire's request implements the protocol classes. Source: "Authorize with Shared Key", section
"Constructing the signature string": headers, path and query are signed as they were sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from strongroom.enums import FastHashEnum


class HeaderFields(Protocol):
    """Header fields, looked up by lower-case name; text is the bytes sent, decoded as latin-1."""

    def get(self, name: str) -> str | None:
        """The first value of the field."""
        ...

    def lowered(self) -> Iterable[tuple[str, str]]:
        """(lower-case name, first value) of every field name."""
        ...

    @property
    def repeats(self) -> Sequence[str]:
        """The lower-case names of the fields that were sent more than once."""
        ...


class RequestParts(Protocol):
    """The signed parts of a request. Nothing in them is decoded; text is latin-1."""

    @property
    def method(self) -> str:
        """Upper case."""
        ...

    @property
    def path(self) -> str:
        """The path of the request target, percent-encoded as sent, without the query."""
        ...

    @property
    def mount(self) -> str:
        """The part of the path before the account, on a port of several services; else ""."""
        ...

    @property
    def query(self) -> str | None:
        """The text behind the first question mark, as sent; None when there is none."""
        ...

    @property
    def headers(self) -> HeaderFields: ...

    @property
    def tls(self) -> bool: ...


class Service(FastHashEnum):
    """The value is the service's name in the canonicalised resource of a SAS."""

    BLOB = "blob"
    QUEUE = "queue"
    TABLE = "table"
    FILE = "file"

    letter: str
    """Its letter in `ss` of an account SAS."""

    def __init__(self, name: str) -> None:
        self.letter = name[0]


class Target(msgspec.Struct, frozen=True):
    """The resource that a request addresses, decoded.

    Attributes:
        account: the account's name, without `-secondary`.
        container: the container (or queue, table, share); None = the account itself. A blob that is
            addressed without a container has `$root` here.
        blob: the blob (or file path); None = the container itself.
        snapshot: text of the `snapshot` query parameter.
        version_id: text of the `versionid` query parameter.
    """

    service: Service
    account: str
    container: str | None = None
    blob: str | None = None
    snapshot: str | None = None
    version_id: str | None = None
