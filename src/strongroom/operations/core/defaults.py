"""The values of an operation's fields for a request that sends none of them.

They are computed when an operation is declared, by reading each field from such a request. Source:
the declarations, which name the headers and parameters of each field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

from strongroom.errors.core import StorageError
from strongroom.wire.core.http import Headers, Request
from strongroom.wire.core.query import Query

Read = Callable[[Request, Query], Any]


class _UndeclaredRead(AttributeError):
    """A field reads a header or parameter that it does not declare.

    A field that reads all names, the method or the body fails in the same way.
    """


def _none_of(names: frozenset[str]) -> Callable[[Collection[str]], bool]:
    def has_none_of(asked: Collection[str]) -> bool:
        if not names.issuperset(asked):
            raise _UndeclaredRead
        return True

    return has_none_of


class _NoHeaders(Headers):
    """Headers of which none of `names` was sent. It is not known whether others were sent."""

    __slots__ = ()

    def __init__(self, names: frozenset[str]) -> None:
        self.has_none_of = _none_of(names)
        self.get = lambda name: None if self.has_none_of((name,)) else ""

    def __contains__(self, name: str) -> bool:
        return not self.has_none_of((name,))


class _NoQuery(Query):
    """Parameters of which none of `names` was sent, like _NoHeaders."""

    __slots__ = ()

    def __init__(self, names: frozenset[str]) -> None:
        self.has_none_of = _none_of(names)
        self.get = lambda name: None if self.has_none_of(frozenset((name,))) else ""

    def __contains__(self, name: str) -> bool:
        return not self.has_none_of(frozenset((name,)))


class _HeadersOnlyRequest:
    """A request that has headers only, and no other attribute."""

    __slots__ = ("headers",)

    def __init__(self, headers: Headers) -> None:
        self.headers = headers


def values(
    reads: Iterable[tuple[str, Read]], headers: frozenset[str], query: frozenset[str]
) -> dict[str, Any] | None:
    """The value of each field, by its name, for every request that sends none of `headers` and
    `query`.

    A field is a function of the request alone. If it reads only the declared names, its value is
    always the same. A field called "" fills nothing and is left out.

    Returns: None if a field refuses such a request, or reads names that it does not declare.
    """
    request, asked = cast("Request", _HeadersOnlyRequest(_NoHeaders(headers))), _NoQuery(query)
    try:
        found = {name: read(request, asked) for name, read in reads}
    except (StorageError, AttributeError):
        return None
    found.pop("", None)
    return found
