"""The field and answer of Query Entities: a page's start, its document, the start of the next page.

Lives here: functions from parameters to positions, and from pages to headers and documents. Must
not live here: JSON itself (wire/table/odata_documents.py), the choice of a page's entities
(services/table/query_entities.py). Source: "Query Entities", "Query timeout and pagination".
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.operations.core import answers
from strongroom.operations.core.spec import Content, Field, Origin
from strongroom.operations.table import entity_returned as give
from strongroom.operations.table.entity_fields import selected
from strongroom.semantics.table import table_intervals
from strongroom.services.core.calls import Call
from strongroom.services.table.query_entities import EntityPage
from strongroom.wire.core import continuation
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query
from strongroom.wire.table import odata_documents
from strongroom.wire.table.odata_documents import TableAddress

_PARTITION: Final = continuation.NEXT_PARTITION_KEY
_ROW: Final = continuation.NEXT_ROW_KEY


def _start(request: Request, query: Query) -> table_intervals.Position:
    found = continuation.decode_keys(query.get(_PARTITION.lower()), query.get(_ROW.lower()))
    return table_intervals.START if found is None else found


START: Final = Field("start", _start, query=(_PARTITION.lower(), _ROW.lower()))


def next_page(page: EntityPage) -> answers.Headers:
    """Return the continuation headers; none if there is no next page."""
    if page.next is None:
        return ()
    partition, row = map(continuation.encode, page.next)
    return (
        (f"x-ms-continuation-{_PARTITION}", partition),
        (f"x-ms-continuation-{_ROW}", row),
    )


def document(page: EntityPage, call: Call[Any], origin: Origin) -> Content:
    """Return the JSON document of a page of entities, with the properties that `$select` names."""
    body = odata_documents.entities(
        page.rows,
        give.metadata_of(origin),
        TableAddress(origin.endpoint, call.target.account, call.target.container),
        selected(origin.query),
    )
    return answers.long_document(body)
