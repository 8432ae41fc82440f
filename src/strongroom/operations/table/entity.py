"""Declarations: operations on entities, except queries, in the order of the reference.

Source: "Operations on entities" of the REST reference; docs/operations/table.md, table "Entities".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import limits
from strongroom.errors import table as table_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.operations.table import entity_fields as fields
from strongroom.operations.table import entity_returned as give
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.core.calls import UNGUARDED, UNGUARDED_FREEING
from strongroom.services.table import entities
from strongroom.services.table.entities import WriteEntity

_DOCUMENT: Final = BodyKind("document", fields.read_document, limits.ENTITY_BODY_BYTES_MAX)
_WRITES: Final = (
    table_errors.DUPLICATE_PROPERTIES_SPECIFIED,
    table_errors.ENTITY_TOO_LARGE,
    table_errors.INVALID_VALUE_TYPE,
    table_errors.PROPERTY_NAME_INVALID,
    table_errors.PROPERTY_NAME_TOO_LONG,
    table_errors.PROPERTY_VALUE_TOO_LARGE,
    table_errors.TOO_MANY_PROPERTIES,
)

GET_ENTITY: Final = Operation(
    name="Get Entity",
    id="table_query_entity_with_partition_and_row_key",
    methods=("GET",),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_READ,
    rule=UNGUARDED,
    accepts=(fields.FORMAT, fields.SELECT_CHECKED, fields.NO_SET_OPTIONS),
    returns=(give.ROW_ETAG,),
    request_dependent_headers=give.content_type,
    content=give.entity,
    fails=(table_errors.PROPERTY_VALUE_TOO_LARGE,),
    run=entities.get_entity,
)

INSERT_ENTITY: Final = Operation(
    name="Insert Entity",
    id="table_insert_entity",
    methods=("POST",),
    resource=Resource.TABLE,
    permission=permissions.ENTITY_ADD,
    rule=UNGUARDED,
    input=partial(WriteEntity, EntityChange.INSERT),
    accepts=(fields.FORMAT, fields.SENT_FORMAT, fields.ECHO),
    body=_DOCUMENT,
    success=give.created_status,
    returns=(give.ETAG,),
    request_dependent_headers=give.inserted_headers,
    content=give.inserted,
    fails=(
        *_WRITES,
        table_errors.ENTITY_ALREADY_EXISTS,
        table_errors.PROPERTIES_NEED_VALUE,
    ),
    run=entities.write_entity,
)

_REPLACES: Final = ("PUT",)
_MERGES: Final = ("MERGE", "PATCH")


def _change(name: str, id: str, methods: tuple[str, ...], change: EntityChange) -> Operation:
    """A write of an existing entity, under the condition of If-Match."""
    return Operation(
        name=name,
        id=id,
        methods=methods,
        resource=Resource.ENTITY,
        when=(When("if-match"),),
        permission=permissions.ENTITY_UPDATE,
        rule=UNGUARDED,
        input=partial(WriteEntity, change),
        accepts=(fields.IF_MATCH, fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
        body=_DOCUMENT,
        success=204,
        returns=(give.ETAG,),
        fails=(*_WRITES, table_errors.UPDATE_CONDITION_NOT_SATISFIED),
        run=entities.write_entity,
    )


def _upsert(name: str, id: str, methods: tuple[str, ...], change: EntityChange) -> Operation:
    """A write of an entity that may or may not exist."""
    return Operation(
        name=name,
        id=id,
        methods=methods,
        resource=Resource.ENTITY,
        permission=permissions.ENTITY_UPSERT,
        rule=UNGUARDED,
        input=partial(WriteEntity, change),
        accepts=(fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
        body=_DOCUMENT,
        success=204,
        returns=(give.ETAG,),
        fails=_WRITES,
        run=entities.write_entity,
    )


UPDATE_ENTITY: Final = _change(
    "Update Entity", "table_update_entity", _REPLACES, EntityChange.UPDATE
)
INSERT_OR_REPLACE_ENTITY: Final = _upsert(
    "Insert Or Replace Entity",
    "table_insert_or_replace_entity",
    _REPLACES,
    EntityChange.INSERT_OR_REPLACE,
)
MERGE_ENTITY: Final = _change("Merge Entity", "table_merge_entity", _MERGES, EntityChange.MERGE)
INSERT_OR_MERGE_ENTITY: Final = _upsert(
    "Insert Or Merge Entity", "table_insert_or_merge_entity", _MERGES, EntityChange.INSERT_OR_MERGE
)

DELETE_ENTITY: Final = Operation(
    name="Delete Entity",
    id="table_delete_entity",
    methods=("DELETE",),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_DELETE,
    rule=UNGUARDED_FREEING,
    input=partial(WriteEntity, EntityChange.DELETE),
    accepts=(fields.IF_MATCH, fields.NO_OTHER_CONDITION),
    success=204,
    fails=(
        table_errors.UPDATE_CONDITION_NOT_SATISFIED,
        table_errors.PROPERTY_VALUE_TOO_LARGE,
    ),
    run=entities.write_entity,
)

OPERATIONS: Final = (
    GET_ENTITY,
    INSERT_ENTITY,
    UPDATE_ENTITY,
    INSERT_OR_REPLACE_ENTITY,
    MERGE_ENTITY,
    INSERT_OR_MERGE_ENTITY,
    DELETE_ENTITY,
)
