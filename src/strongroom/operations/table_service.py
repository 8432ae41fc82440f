"""The Table service: its operations, and how its URLs are read.

Lives here: the list. Must not live here: the declarations of tables (table.py) and of entities
(entity.py). Source: "Addressing Table service resources".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.operations import properties
from strongroom.operations.endpoint import Addressed, Endpoint
from strongroom.operations.routes import Routes
from strongroom.operations.spec import Resource
from strongroom.semantics import names
from strongroom.wire import table_path
from strongroom.wire.path import Target
from strongroom.wire.query import Query
from strongroom.wire.service_properties_xml import read_shared_properties

ROUTES: Final = Routes(
    (
        properties.preflight("Table"),
        *properties.properties("Table", read_shared_properties),
    )
)


def _address(target: Target, asked: Query) -> Addressed:
    """What lies behind the account's name; a slash can only be part of a key.

    Raises: InvalidUri.
    """
    if target.container is None:
        return Addressed(target, Resource.SERVICE)
    text = target.container if target.blob is None else f"{target.container}/{target.blob}"
    found = table_path.parse_resource(text)
    if found.name == table_path.BATCH:
        # The table of a SAS: its stored policies are needed to judge who sends the batch.
        return Addressed(_of(target, asked.get("tn")), Resource.BATCH)
    if found.name == table_path.TABLES:
        if isinstance(found.keyed, str):
            return Addressed(_of(target, found.keyed), Resource.TABLE_NAMED)
        return Addressed(_of(target, None), Resource.TABLES)
    if isinstance(found.keyed, tuple):
        return Addressed(_of(target, found.name), Resource.ENTITY, found.keyed)
    return Addressed(_of(target, found.name), Resource.TABLE)


def _of(target: Target, table: str | None) -> Target:
    return msgspec.structs.replace(target, container=table, blob=None)


def _check_names(addressed: Addressed) -> None:
    if addressed.target.container is not None:
        names.check_table(addressed.target.container)


ENDPOINT: Final = Endpoint(Service.TABLE, ROUTES, _address, _check_names)
