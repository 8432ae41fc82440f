"""Routes: finds the operation of a request by an index of the declarations.

The index is checked when it is built. It matches by method, depth of the URL, `restype`, `comp` and
the headers that distinguish operations. Source: reference section 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import (
    ErrorCode,
    StorageError,
    invalid_header,
    invalid_query,
    missing_header,
)
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query

_METHODS: Final = frozenset(
    {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE", "TRACE", "CONNECT"}
)


# A required header or query parameter: whether it is a parameter, its name, and its value in lower
# case (None = any).
_Discriminator = tuple[bool, str, str | None]
# Resource, restype and comp. A plain tuple, since each request makes one.
_Place = tuple[Resource, str | None, str | None]
_ANYWHERE: Final[_Place] = (Resource.ANY, None, None)


class Ambiguous(Exception):
    """Two declarations match the same request, or no request can reach one of them."""


class Routes:
    """The operations of one service.

    Arguments:
        operations: the declarations, in the order in which they are tried.
        verb_refused: the error for a method that a resource does not have.

    Raises: Ambiguous.
    """

    def __init__(
        self,
        operations: Iterable[Operation],
        verb_refused: ErrorCode = errors.UNSUPPORTED_HTTP_VERB,
    ) -> None:
        self._verb_refused = verb_refused
        self.operations = tuple(operations)
        self._index: dict[
            tuple[str, _Place], list[tuple[Operation, tuple[_Discriminator, ...]]]
        ] = {}
        self._allowed: dict[_Place, list[str]] = {}
        for operation in self.operations:
            place = (operation.resource, operation.restype, operation.comp)
            for method in operation.methods:
                rivals = self._index.setdefault((method, place), [])
                for rival, _ in rivals:
                    if set(rival.when) <= set(operation.when):
                        raise Ambiguous(f"{rival.name} hides {operation.name}")
                rivals.append((operation, tuple(map(_discriminator, operation.when))))
                allowed = self._allowed.setdefault(place, [])
                if method not in allowed:
                    allowed.append(method)

    def match(self, method: str, resource: Resource, query: Query, headers: Headers) -> Operation:
        """An error names what is wrong with the request: the verb with Allow, comp or restype, or
        the header that distinguishes the operations."""
        if method == "OPTIONS":
            place = _ANYWHERE
        else:
            restype, comp = query.get("restype"), query.get("comp")
            place = (resource, restype and restype.lower(), comp and comp.lower())
        rivals = self._index.get((method, place))
        if rivals is None:
            raise self._unmatched(method, place)
        for operation, marks in rivals:
            for in_query, name, expected in marks:
                value = query.get(name) if in_query else headers.get(name)
                if value is None or not (expected is None or value.lower() == expected):
                    break
            else:
                return operation
        raise _undecided(rivals[-1][0], headers)

    def _unmatched(self, method: str, place: _Place) -> StorageError:
        if method not in _METHODS:
            return StorageError(errors.INVALID_HTTP_VERB)
        allowed = self._allowed.get(place)
        if allowed is not None:
            headers = (("Allow", ", ".join(allowed)),)
            return StorageError(self._verb_refused, None, (), headers)
        resource, restype, comp = place
        reason = "No operation on this resource has it."
        if comp is None or all(other[:2] != (resource, restype) for other in self._allowed):
            return invalid_query("restype", restype or "", reason)
        return invalid_query("comp", comp, reason)


def _discriminator(when: When) -> _Discriminator:
    value = None if when.value is None else when.value.lower()
    return when.name.startswith("?"), when.name.removeprefix("?"), value


def _undecided(rival: Operation, headers: Headers) -> StorageError:
    """The error for a URL whose operations all need a header names that header."""
    name = rival.when[-1].name
    value = headers.get(name)
    return missing_header(name) if value is None else invalid_header(name, value)
