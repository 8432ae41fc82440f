"""Queries and writes of entities, as kinds of long work."""

import json
from collections.abc import Callable
from typing import Final

from benchmarks.endpoint import Endpoint
from benchmarks.engine import CONNECTION, Step
from benchmarks.fairness.kinds import nothing, requests
from benchmarks.table_workloads import entity_batches

_PARTITIONS: Final = 50  # of a thousand entities each
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}


def _query(text: str) -> Callable[[Endpoint], Step]:
    fields = {"Accept": "application/json;odata=minimalmetadata"}
    path = f"/fair()?$filter={text}"
    return lambda endpoint: endpoint.step("long", "GET", path, 200, headers=fields)


def _long_entity(endpoint: Endpoint) -> Step:
    """Return Insert Or Replace Entity of 900 KB in 30 properties."""
    values = {f"Text{number}": "x" * 15_000 for number in range(30)}
    body = json.dumps(values).encode()
    path = f"/fair(PartitionKey='p',RowKey='{CONNECTION}')"
    return endpoint.step("long", "PUT", path, 204, headers=_JSON, body=body)


def _refused_json(endpoint: Endpoint) -> Step:
    """Return an insert with a body of 4 MB, which is too large for an entity."""
    body = json.dumps({f"Name{number}": number for number in range(190_000)}).encode()
    return endpoint.step("long", "POST", "/fair", 400, 413, headers=_JSON, body=body)


ENTITIES: Final = (
    requests(
        "filter over 50,000 entities that matches none",
        lambda endpoint: entity_batches(endpoint, "fair", _PARTITIONS),
        _query("Name%20eq%20'no'"), "table",
    ),
    requests(
        "filter of text over 50,000 entities that matches none", nothing,
        _query("Name%20ge%20'y'%20and%20not(Kind%20eq%20'order')%20or%20Count%20gt%2099L"),
        "table",
    ),
    requests("1,000 of 50,000 entities", nothing, _query("Number%20ge%200"), "table"),
    requests("an entity of 900 KB", nothing, _long_entity, "table"),
    requests("JSON of 4 MB", nothing, _refused_json, "table"),
)  # fmt: skip
