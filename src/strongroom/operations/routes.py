"""From a request to its operation: an index over the declarations, checked when it is built.

Lives here: matching by method, depth of the URL, `restype`, `comp` and the headers that tell
operations apart. Must not live here: the declarations. Source: reference section 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strongroom import errors
from strongroom.errors import ErrorCode, StorageError, invalid_header, invalid_query, missing_header
from strongroom.operations.spec import Operation, Resource, When
from strongroom.wire.http import Headers
from strongroom.wire.query import Query

_METHODS: Final = frozenset(
    {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE", "TRACE", "CONNECT"}
)


# Resource, restype and comp. A plain tuple, since each request makes one.
_Place = tuple[Resource, str | None, str | None]
_ANYWHERE: Final[_Place] = (Resource.ANY, None, None)


class Ambiguous(Exception):
    """Two declarations that the same request could match, or one that none can reach."""


class Routes:
    """The operations of one service.

    Arguments:
        operations: the declarations, in the order in which they are tried.
        verb_refused: the answer to a method that a resource does not have.

    Raises: Ambiguous.
    """

    def __init__(
        self,
        operations: Iterable[Operation],
        verb_refused: ErrorCode = errors.UNSUPPORTED_HTTP_VERB,
    ) -> None:
        self._verb_refused = verb_refused
        self.operations = tuple(operations)
        self._index: dict[tuple[str, _Place], list[Operation]] = {}
        self._allowed: dict[_Place, list[str]] = {}
        for operation in self.operations:
            place = (operation.resource, operation.restype, operation.comp)
            for method in operation.methods:
                rivals = self._index.setdefault((method, place), [])
                for rival in rivals:
                    if set(rival.when) <= set(operation.when):
                        raise Ambiguous(f"{rival.name} hides {operation.name}")
                rivals.append(operation)
                allowed = self._allowed.setdefault(place, [])
                if method not in allowed:
                    allowed.append(method)

    def match(self, method: str, resource: Resource, query: Query, headers: Headers) -> Operation:
        """The operation that a request asks for.

        Raises: StorageError InvalidHttpVerb, UnsupportedHttpVerb (or `verb_refused`) with Allow,
            InvalidQueryParameterValue (comp or restype), MissingRequiredHeader or
            InvalidHeaderValue for the header that would have told operations apart.
        """
        if method == "OPTIONS":
            place = _ANYWHERE
        else:
            restype, comp = query.get("restype"), query.get("comp")
            place = (resource, restype and restype.lower(), comp and comp.lower())
        rivals = self._index.get((method, place))
        if rivals is None:
            raise self._unmatched(method, place)
        for operation in rivals:
            for when in operation.when:
                if not _holds(when, headers, query):
                    break
            else:
                return operation
        raise _undecided(rivals, headers)

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


def _holds(when: When, headers: Headers, query: Query) -> bool:
    in_query = when.name.startswith("?")
    value = query.get(when.name[1:]) if in_query else headers.get(when.name)
    return value is not None and (when.value is None or value.lower() == when.value.lower())


def _undecided(rivals: list[Operation], headers: Headers) -> StorageError:
    """Several operations have this URL and none matches: name the header that tells them apart."""
    name = rivals[-1].when[-1].name
    value = headers.get(name)
    return missing_header(name) if value is None else invalid_header(name, value)
