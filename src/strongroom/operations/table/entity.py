"""Declarations: operations on entities but for queries, in the order of the reference.

Lives here: data only. Must not live here: functions. Source: "Operations on entities" of the REST
reference; docs/operations/table.md, table "Entities".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import errors, limits, table_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Body, Operation, Resource, When
from strongroom.operations.table import entity_fields as fields
from strongroom.operations.table import entity_returned as give
from strongroom.semantics.table.entities import Change
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.table import entities
from strongroom.services.table.entities import WriteEntity
from strongroom.values import Purpose

UNGUARDED: Final = Rule(conditions=ConditionUse.IGNORED)
FREES: Final = Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.FREEING)
_DOCUMENT: Final = Body("document", fields.read_document, limits.ENTITY_BODY_BYTES_MAX)
_IF_MATCH: Final = (When("if-match"),)
_WRITES: Final = (
    table_errors.DUPLICATE_PROPERTIES_SPECIFIED,
    table_errors.ENTITY_TOO_LARGE,
    table_errors.INVALID_VALUE_TYPE,
    table_errors.PROPERTY_NAME_INVALID,
    table_errors.PROPERTY_NAME_TOO_LONG,
    table_errors.PROPERTY_VALUE_TOO_LARGE,
    table_errors.TOO_MANY_PROPERTIES,
    errors.REQUEST_BODY_TOO_LARGE,
)
_CHANGES: Final = (*_WRITES, table_errors.UPDATE_CONDITION_NOT_SATISFIED)

GET_ENTITY: Final = Operation(
    name="Get Entity",
    id="table_query_entity_with_partition_and_row_key",
    methods=("GET",),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_READ,
    rule=UNGUARDED,
    accepts=(fields.FORMAT, fields.SELECT_CHECKED, fields.NOT_OF_ONE),
    returns=(give.ROW_ETAG,),
    describes=give.content_type,
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
    input=partial(WriteEntity, Change.INSERT),
    accepts=(fields.FORMAT, fields.SENT_FORMAT, fields.ECHO),
    body=_DOCUMENT,
    success=give.created_status,
    returns=(give.ETAG,),
    describes=give.inserted_headers,
    content=give.inserted,
    fails=(
        *_WRITES,
        table_errors.ENTITY_ALREADY_EXISTS,
        table_errors.PROPERTIES_NEED_VALUE,
    ),
    run=entities.write_entity,
)

UPDATE_ENTITY: Final = Operation(
    name="Update Entity",
    id="table_update_entity",
    methods=("PUT",),
    resource=Resource.ENTITY,
    when=_IF_MATCH,
    permission=permissions.ENTITY_UPDATE,
    rule=UNGUARDED,
    input=partial(WriteEntity, Change.UPDATE),
    accepts=(fields.IF_MATCH, fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
    body=_DOCUMENT,
    success=204,
    returns=(give.ETAG,),
    fails=_CHANGES,
    run=entities.write_entity,
)

INSERT_OR_REPLACE_ENTITY: Final = Operation(
    name="Insert Or Replace Entity",
    id="table_insert_or_replace_entity",
    methods=("PUT",),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_UPSERT,
    rule=UNGUARDED,
    input=partial(WriteEntity, Change.INSERT_OR_REPLACE),
    accepts=(fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
    body=_DOCUMENT,
    success=204,
    returns=(give.ETAG,),
    fails=_WRITES,
    run=entities.write_entity,
)

MERGE_ENTITY: Final = Operation(
    name="Merge Entity",
    id="table_merge_entity",
    methods=("MERGE", "PATCH"),
    resource=Resource.ENTITY,
    when=_IF_MATCH,
    permission=permissions.ENTITY_UPDATE,
    rule=UNGUARDED,
    input=partial(WriteEntity, Change.MERGE),
    accepts=(fields.IF_MATCH, fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
    body=_DOCUMENT,
    success=204,
    returns=(give.ETAG,),
    fails=_CHANGES,
    run=entities.write_entity,
)

INSERT_OR_MERGE_ENTITY: Final = Operation(
    name="Insert Or Merge Entity",
    id="table_insert_or_merge_entity",
    methods=("MERGE", "PATCH"),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_UPSERT,
    rule=UNGUARDED,
    input=partial(WriteEntity, Change.INSERT_OR_MERGE),
    accepts=(fields.NO_OTHER_CONDITION, fields.SENT_FORMAT),
    body=_DOCUMENT,
    success=204,
    returns=(give.ETAG,),
    fails=_WRITES,
    run=entities.write_entity,
)

DELETE_ENTITY: Final = Operation(
    name="Delete Entity",
    id="table_delete_entity",
    methods=("DELETE",),
    resource=Resource.ENTITY,
    permission=permissions.ENTITY_DELETE,
    rule=FREES,
    input=partial(WriteEntity, Change.DELETE),
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
