"""Declarations: operations on several entities: queries, and batches of writes.

Source: "Query Entities", "Performing entity group transactions"; docs/operations/table.md, tables
"Queries" and "Batches".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import limits
from strongroom.errors import table as table_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.fields import header
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.operations.table import entity_fields as fields
from strongroom.operations.table import entity_returned as give
from strongroom.services.core.calls import UNGUARDED
from strongroom.services.table import query_entities, transactions
from strongroom.services.table.query_entities import QueryEntities
from strongroom.wire.core import multipart

QUERY_ENTITIES: Final = Operation(
    name="Query Entities",
    id="table_query_entities",
    methods=("GET",),
    resource=Resource.TABLE,
    permission=permissions.ENTITY_READ,
    rule=UNGUARDED,
    input=QueryEntities,
    accepts=(
        fields.FORMAT,
        fields.SELECT_CHECKED,
        fields.FILTER,
        fields.TOP,
        fields.START,
        fields.NO_UNKNOWN_OPTIONS,
    ),
    extra_headers=give.next_entities,
    request_dependent_headers=give.content_type,
    content=give.entity_list,
    run=query_entities.query_entities,
)

BATCH: Final = Operation(
    name="Entity Group Transaction",
    id="table_batch",
    methods=("POST",),
    resource=Resource.BATCH,
    permission=permissions.ANY_OF_ENTITIES,
    rule=UNGUARDED,
    input=partial(multipart.parse, requests_max=limits.BATCH_OPERATIONS_MAX),
    accepts=(header("content_type", "content-type", default=""),),
    body=BodyKind("body", bytes, limits.BATCH_BODY_BYTES_MAX),
    success=202,
    fails=(
        table_errors.COMMANDS_ON_DIFFERENT_PARTITIONS,
        table_errors.INVALID_DUPLICATE_ROW,
    ),
    run=transactions.transact,
)

OPERATIONS: Final = (QUERY_ENTITIES, BATCH)
