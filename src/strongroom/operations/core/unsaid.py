"""The values of an operation's fields for a request that sends none of them.

Lives here: finding it out when an operation is declared, by having each field read such a request.
Must not live here: any one field (fields.py and its siblings), the operation's own shape (spec.py).
Source: the declarations; which headers and parameters a field is read from is part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

from strongroom.errors import StorageError
from strongroom.wire.core.http import Headers, Request
from strongroom.wire.core.query import Query

Read = Callable[[Request, Query], Any]


class _ReadsMore(AttributeError):
    """A field looks at what it does not name. So does one that asks for what is not there at all:
    all names that were sent, the method, the body."""


def _none_of(names: frozenset[str]) -> Callable[[Collection[str]], bool]:
    def has_none_of(asked: Collection[str]) -> bool:
        if not names.issuperset(asked):
            raise _ReadsMore
        return True

    return has_none_of


class _NoHeaders(Headers):
    """Headers of which none of `names` was sent. Whether others were is not known."""

    __slots__ = ()

    def __init__(self, names: frozenset[str]) -> None:
        self.has_none_of = _none_of(names)
        self.get = lambda name: None if self.has_none_of((name,)) else ""

    def __contains__(self, name: str) -> bool:
        return not self.has_none_of((name,))


class _NoQuery(Query):
    """As _NoHeaders, of parameters."""

    __slots__ = ()

    def __init__(self, names: frozenset[str]) -> None:
        self.has_none_of = _none_of(names)
        self.get = lambda name: None if self.has_none_of(frozenset((name,))) else ""

    def __contains__(self, name: str) -> bool:
        return not self.has_none_of(frozenset((name,)))


class _Silent:
    """A request of which nothing can be asked but its headers."""

    __slots__ = ("headers",)

    def __init__(self, headers: Headers) -> None:
        self.headers = headers


def values(
    reads: Iterable[tuple[str, Read]], headers: frozenset[str], query: frozenset[str]
) -> dict[str, Any] | None:
    """The value of each field, by its name, for every request that sends none of `headers` and
    `query`.

    A field is a function of the request alone. One that asked for nothing else gives the same
    answer each time. What is called "" fills nothing and is left out.

    Returns: None where one refuses such a request, or looks at what it does not name.
    """
    request, asked = cast("Request", _Silent(_NoHeaders(headers))), _NoQuery(query)
    try:
        found = {name: read(request, asked) for name, read in reads}
    except (StorageError, AttributeError):
        return None
    found.pop("", None)
    return found
