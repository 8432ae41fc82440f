"""Declarations: operations on tables, in the order of the reference.

Source: "Operations on tables" of the REST reference; docs/operations/table.md, table "Tables".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import table as table_errors
from strongroom.operations.core import answers, permissions
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.operations.table import entity_fields as fields
from strongroom.operations.table import entity_returned as give
from strongroom.services.core.calls import UNGUARDED, UNGUARDED_FREEING
from strongroom.services.table import tables
from strongroom.wire.core.signed_identifiers import read_signed_identifiers
from strongroom.wire.table.odata_entities import read_table_name

QUERY_TABLES: Final = Operation(
    name="Query Tables",
    id="table_query",
    methods=("GET",),
    resource=Resource.TABLES,
    permission=permissions.TABLE_LIST,
    rule=UNGUARDED,
    input=tables.QueryTables,
    accepts=(
        fields.FORMAT,
        fields.FILTER,
        fields.TOP,
        fields.NEXT_TABLE,
        fields.NO_UNKNOWN_OPTIONS,
    ),
    extra_headers=give.next_table,
    request_dependent_headers=give.content_type,
    content=give.table_list,
    run=tables.query_tables,
)

GET_TABLE: Final = Operation(
    name="Get Table",
    id="table_query_single",
    methods=("GET",),
    resource=Resource.TABLE_NAMED,
    permission=permissions.TABLE_LIST,
    rule=UNGUARDED,
    accepts=(fields.FORMAT,),
    request_dependent_headers=give.content_type,
    content=give.table,
    run=tables.get_table,
)

CREATE_TABLE: Final = Operation(
    name="Create Table",
    id="table_create",
    methods=("POST",),
    resource=Resource.TABLES,
    permission=permissions.TABLE_CREATE,
    rule=UNGUARDED,
    input=tables.CreateTable,
    accepts=(fields.FORMAT, fields.SENT_FORMAT, fields.ECHO),
    body=BodyKind("name", read_table_name, limits.XML_BODY_BYTES_MAX),
    success=give.created_status,
    request_dependent_headers=give.table_headers,
    content=give.created_table,
    fails=(table_errors.TABLE_ALREADY_EXISTS, table_errors.PROPERTIES_NEED_VALUE),
    run=tables.create_table,
)

DELETE_TABLE: Final = Operation(
    name="Delete Table",
    id="table_delete",
    methods=("DELETE",),
    resource=Resource.TABLE_NAMED,
    permission=permissions.TABLE_DELETE,
    rule=UNGUARDED_FREEING,
    success=204,
    run=tables.delete_table,
)

GET_TABLE_ACL: Final = Operation(
    name="Get Table ACL",
    id="table_get_access_policy",
    methods=("GET", "HEAD"),
    resource=Resource.TABLE,
    comp="acl",
    permission=permissions.GET_ACL,
    rule=UNGUARDED,
    returns=(answers.XML,),
    content=answers.policies,
    run=tables.get_acl,
)

SET_TABLE_ACL: Final = Operation(
    name="Set Table ACL",
    id="table_set_access_policy",
    methods=("PUT",),
    resource=Resource.TABLE,
    comp="acl",
    permission=permissions.SET_ACL,
    rule=UNGUARDED,
    input=tables.SetTableAcl,
    body=BodyKind("policies", read_signed_identifiers, limits.XML_BODY_BYTES_MAX),
    success=204,
    run=tables.set_acl,
)

OPERATIONS: Final = (
    QUERY_TABLES,
    GET_TABLE,
    CREATE_TABLE,
    DELETE_TABLE,
    GET_TABLE_ACL,
    SET_TABLE_ACL,
)
