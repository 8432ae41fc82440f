"""The fields that lists of blobs, containers and queues share.

Source: parameters of "List Blobs", "List Containers", "List Queues".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors.core import out_of_range_query
from strongroom.operations.core.fields import parameter
from strongroom.operations.core.spec import Field, Origin
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query
from strongroom.wire.core.xml import PageRequest

_MAX_RESULTS: Final = "maxresults"
_INCLUDE: Final = "include"
# Any number that a client may send: a number that is too large is cut, one that is too small is
# refused.
ANY_INTEGER: Final = 10**18


def max_results(most: int, default: int | None) -> Field:
    """The field `maxresults`; a number that is too large is cut to `most`, one below 1 is
    refused."""

    def read(request: Request, query: Query) -> int | None:
        value = query.integer(_MAX_RESULTS, -ANY_INTEGER, ANY_INTEGER)
        if value is None:
            return default
        if value < 1:
            raise out_of_range_query(_MAX_RESULTS, str(value), 1, most)
        return min(value, most)

    return Field("max_results", read, query=(_MAX_RESULTS,))


def includes(known: frozenset[str]) -> Field:
    """The field `include`: the additional details in the rows of a list."""

    def read(request: Request, query: Query) -> frozenset[str]:
        return query.comma_list(_INCLUDE, known)

    return Field("include", read, query=(_INCLUDE,))


def page_request(origin: Origin, max_results: int) -> PageRequest:
    """The part of the request that a page repeats.

    Arguments:
        max_results: the requested number of rows; shown only if the request gave a number.
    """
    query = origin.query
    most = max_results if query.get(_MAX_RESULTS) else None
    return PageRequest(origin.endpoint, query.get("prefix"), query.get("marker"), most)


MAX_RESULTS: Final = max_results(limits.LIST_RESULTS_MAX, limits.LIST_RESULTS_MAX)
PREFIX: Final = parameter("prefix", "prefix", default="")
DELIMITER: Final = parameter("delimiter", "delimiter", default="")
