"""The headers and documents in the answers of operations on tables and entities.

Source: response headers and bodies of "Operations on tables" and "Operations on entities";
reference sections 2 and 5.
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.operations.core.answers import Headers, document, long_document
from strongroom.operations.core.spec import Content, Origin, Returned
from strongroom.operations.table.entity_fields import selected
from strongroom.services.core.calls import Call
from strongroom.services.table.entities import EntityWritten
from strongroom.services.table.query_entities import EntityPage
from strongroom.services.table.tables import TableNamed, TablePage
from strongroom.values import Entity
from strongroom.wire.core import continuation
from strongroom.wire.table import odata, odata_documents, table_path
from strongroom.wire.table.odata import Metadata
from strongroom.wire.table.odata_documents import TableAddress

ALWAYS: Final[Headers] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
    ("DataServiceVersion", "3.0;"),
)
"""Headers of every answer of the Table service."""


def _etag(written: EntityWritten) -> str | None:
    return None if written.stored is None else odata.etag_text(written.stored.timestamp)


ETAG: Final = Returned("ETag", _etag)
ROW_ETAG: Final = Returned("ETag", lambda row: odata.etag_text(row.timestamp))


def metadata_of(origin: Origin) -> Metadata:
    """The level of metadata that the request asks for."""
    return odata.negotiate(origin.headers.get("accept"), origin.query.get("$format"))


def content_type(result: Any, call: Call[Any], origin: Origin) -> Headers:
    """The Content-Type of a document at the requested level of metadata."""
    return (("Content-Type", metadata_of(origin).content_type),)


def created_status(result: EntityWritten | TableNamed) -> int:
    """201 with the created resource, 204 if the client did not want it back."""
    return 201 if result.echo else 204


def _preference(origin: Origin) -> Headers:
    sent = origin.headers.get("prefer")
    return () if sent is None else (("Preference-Applied", sent.strip().lower()),)


def _created(location: str, result: EntityWritten | TableNamed, origin: Origin) -> Headers:
    preference = _preference(origin)
    if result.echo:
        kind = metadata_of(origin).content_type
        return (("Content-Type", kind), ("Location", location), *preference)
    return (("Location", location), ("DataServiceId", location), *preference)


def inserted_headers(result: EntityWritten, call: Call[Any], origin: Origin) -> Headers:
    """The address of the new entity and the applied preference."""
    link = odata_documents.entity_link(call.target.container, result.partition_key, result.row_key)
    return _created(f"{origin.endpoint}{link}", result, origin)


def table_headers(result: TableNamed, call: Call[Any], origin: Origin) -> Headers:
    """The address of the new table and the applied preference."""
    return _created(f"{origin.endpoint}Tables('{result.name}')", result, origin)


def next_entities(page: EntityPage) -> Headers:
    """The continuation headers of a page of entities; none if there is no next page."""
    if page.next is None:
        return ()
    partition, row = map(continuation.encode, page.next)
    return (
        (f"x-ms-continuation-{continuation.NEXT_PARTITION_KEY}", partition),
        (f"x-ms-continuation-{continuation.NEXT_ROW_KEY}", row),
    )


def next_table(page: TablePage) -> Headers:
    """The continuation header of a page of tables; none if there is no next page."""
    if page.resume is None:
        return ()
    token = continuation.encode(page.resume.encode("utf-8", "replace"))
    return (("x-ms-continuation-NextTableName", token),)


def entity(row: Entity, call: Call[Any], origin: Origin) -> Content:
    select = selected(origin.query)
    place = _place(origin, call, call.target.container)
    return document(odata_documents.entity(row, metadata_of(origin), place, select))


def entity_list(page: EntityPage, call: Call[Any], origin: Origin) -> Content:
    """A page of entities, with the properties that `$select` names."""
    place = _place(origin, call, call.target.container)
    level, select = metadata_of(origin), selected(origin.query)
    return long_document(odata_documents.entities(page.rows, level, place, select))


def inserted(result: EntityWritten, call: Call[Any], origin: Origin) -> Content:
    """The document of a new entity; an empty body if the client did not want it back."""
    if not result.echo or result.stored is None:
        return document(b"")
    stored = result.stored
    row = Entity(result.partition_key, result.row_key, stored.timestamp, stored.fragment)
    return entity(row, call, origin)


def table(result: TableNamed, call: Call[Any], origin: Origin) -> Content:
    place = _place(origin, call, table_path.TABLES)
    return document(odata_documents.table(result.name, metadata_of(origin), place))


def created_table(result: TableNamed, call: Call[Any], origin: Origin) -> Content:
    """The document of a new table; an empty body if the client did not want it back."""
    return table(result, call, origin) if result.echo else document(b"")


def table_list(page: TablePage, call: Call[Any], origin: Origin) -> Content:
    place = _place(origin, call, table_path.TABLES)
    return long_document(odata_documents.tables(page.names, metadata_of(origin), place))


def _place(origin: Origin, call: Call[Any], name: str) -> TableAddress:
    return TableAddress(origin.endpoint, call.target.account, name)
