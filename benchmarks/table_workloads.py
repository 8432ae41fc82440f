"""The workloads of tables and queues; see workloads.py.

An entity has five properties besides its keys; a message is 100 bytes long.
"""

import json
from typing import Final

from benchmarks.endpoint import ACCOUNT, HOST, Endpoint, UnexpectedAnswer
from benchmarks.engine import CONNECTION, CYCLE, ESCAPED, FURTHER, SCATTERED, Found, Report, Step
from benchmarks.workloads import Workload

_JSON: Final = {
    "Accept": "application/json;odata=minimalmetadata",
    "Content-Type": "application/json",
    "DataServiceVersion": "3.0",
    "Prefer": "return-no-content",
}
_XML: Final = {"Content-Type": "application/xml"}
_STORED: Final = 1000
_SMALL_PARTITIONS, _LARGE_PARTITIONS = 5, 50
_BATCH: Final = 100
_BOUNDARY: Final = "batch_0f"
_TEXT: Final = f"<QueueMessage><MessageText>{'x' * 100}</MessageText></QueueMessage>".encode()


def entity(partition_key: str, row_key: str, **more: int) -> bytes:
    """Return the JSON of an entity; keys may contain marks."""
    values = {
        "PartitionKey": partition_key, "RowKey": row_key, "Name": "x" * 40, "Kind": "order",
        "Total": 12.5, "Open": True, "Count": 7, **more,
    }  # fmt: skip
    return json.dumps(values).replace("\\u0001", "\x01").encode()


def _make_table(endpoint: Endpoint, name: str) -> None:
    body = json.dumps({"TableName": name}).encode()
    endpoint.make("/Tables", _JSON, body, "POST")


def _insert(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    body = entity(f"p{turn}-{CONNECTION}", CYCLE)
    return (endpoint.step("insert", "POST", "/inserted", 204, headers=_JSON, body=body),)


def insert_and_delete(endpoint: Endpoint, table: str, turn: int) -> tuple[Step, ...]:
    """Return an insert of an entity, and its deletion."""
    body = entity(f"p{turn}-{CONNECTION}", CYCLE)
    path = f"/{table}(PartitionKey='p{turn}-{CONNECTION}',RowKey='{CYCLE}')"
    fields = {**_JSON, "If-Match": "*"}
    return (
        endpoint.step("insert", "POST", f"/{table}", 204, headers=_JSON, body=body),
        endpoint.step("delete", "DELETE", path, 204, headers=fields),
    )


def _prepare_stored(endpoint: Endpoint) -> None:
    _make_table(endpoint, "stored")
    path = f"/stored(PartitionKey='p',RowKey='{SCATTERED}')"
    body = entity("p", SCATTERED)
    endpoint.fill(endpoint.step("put", "PUT", path, 204, headers=_JSON, body=body), 2 * _STORED)


def _point(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path = f"/stored(PartitionKey='p',RowKey='{SCATTERED}')"
    return (endpoint.step("get", "GET", path, 200, headers=_JSON),)


def _merge(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    path = f"/stored(PartitionKey='p',RowKey='{SCATTERED}')"
    body = json.dumps({"Count": turn}).encode()
    fields = {**_JSON, "If-Match": "*"}
    return (endpoint.step("merge", "MERGE", path, 204, headers=fields, body=body),)


def entity_batches(endpoint: Endpoint, table: str, partitions: int) -> None:
    """Create a table with a thousand entities in each partition."""
    _make_table(endpoint, table)
    for partition in range(partitions):
        for first in range(0, _STORED, _BATCH):
            _insert_batch(endpoint, table, f"p{partition}", range(first, first + _BATCH))


def _insert_batch(endpoint: Endpoint, table: str, partition: str, places: range) -> None:
    """Insert entities in one entity group transaction. Raises UnexpectedAnswer if it is not
    accepted."""
    url = f"http://{HOST}:{endpoint.port}/{ACCOUNT}/{table}".encode()
    operations = b"".join(
        b"--set\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        b"POST %b HTTP/1.1\r\nContent-Type: application/json\r\n"
        b"Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n"
        b"DataServiceVersion: 3.0\r\n\r\n%b\r\n"
        % (url, entity(partition, f"{place:06}", Number=place))
        for place in places
    )
    head = f"--{_BOUNDARY}\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n".encode()
    body = head + operations + f"--set--\r\n--{_BOUNDARY}--\r\n".encode()
    fields = {**_JSON, "Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
    status, answer = endpoint.call("POST", "/$batch", fields, body)
    if status != 202 or answer.count(b"HTTP/1.1 204") != len(places):
        raise UnexpectedAnswer(f"POST /$batch: {status} {answer[:400]!r}")


def _filter(endpoint: Endpoint, table: str) -> tuple[Step, ...]:
    # The query reads one partition of several; a hundred of its thousand entities match.
    path = f"/{table}()?$filter=PartitionKey%20eq%20'p1'%20and%20Number%20lt%20100"
    return (endpoint.step("query", "GET", path, 200, headers=_JSON),)


def _filtering(name: str, table: str, partitions: int) -> Workload:
    return Workload(
        name, "req/s", lambda endpoint: entity_batches(endpoint, table, partitions),
        lambda endpoint, turn: _filter(endpoint, table), _requests, service="table",
    )  # fmt: skip


def _merge_and_filter(endpoint: Endpoint, table: str, turn: int) -> tuple[Step, ...]:
    """Return a write to an entity that the filter reads, and the query with the filter."""
    path = f"/{table}(PartitionKey='p1',RowKey='000500')"
    body = json.dumps({"Count": turn}).encode()
    fields = {**_JSON, "If-Match": "*"}
    merge = endpoint.step("merge", "MERGE", path, 204, headers=fields, body=body)
    return (merge, *_filter(endpoint, table))


def _prepare_queue(endpoint: Endpoint) -> None:
    endpoint.make("/bench")


def _cycle(endpoint: Endpoint, turn: int) -> tuple[Step, ...]:
    found = (
        Found(ESCAPED, "<MessageId>", "</MessageId>"),
        Found(FURTHER, "<PopReceipt>", "</PopReceipt>"),
    )
    path = f"/bench/messages/{ESCAPED}?popreceipt={FURTHER}"
    return (
        endpoint.step("put", "POST", "/bench/messages", 201, headers=_XML, body=_TEXT),
        endpoint.step("get", "GET", "/bench/messages", 200, found=found),
        endpoint.step("delete", "DELETE", path, 204),
    )


def _requests(report: Report) -> float:
    return sum(step.count for step in report.steps)


TABLES: Final = (
    Workload("point query", "req/s", _prepare_stored, _point, _requests, service="table"),
    Workload("merge entity", "req/s", _prepare_stored, _merge, _requests, service="table"),
    _filtering("filter 1,000 of 5,000 entities", "filtered", _SMALL_PARTITIONS),
    _filtering("filter 1,000 of 50,000 entities", "large", _LARGE_PARTITIONS),
    Workload(
        "filter after a merge, 1,000 of 5,000 entities", "queries/s",
        lambda endpoint: entity_batches(endpoint, "changing", _SMALL_PARTITIONS),
        lambda endpoint, turn: _merge_and_filter(endpoint, "changing", turn),
        lambda report: report.step("query").count, service="table",
    ),
    Workload(
        "insert entity", "req/s", lambda endpoint: _make_table(endpoint, "inserted"), _insert,
        _requests, service="table",
    ),
)  # fmt: skip
QUEUES: Final = (
    Workload(
        "queue cycle", "cycles/s", _prepare_queue, _cycle,
        lambda report: report.step("delete").count, service="queue",
    ),
)  # fmt: skip
