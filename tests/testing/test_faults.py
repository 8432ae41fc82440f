"""A test server applies exactly the ordered faults: over HTTP, against the official client."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import BlobServiceClient, ContainerClient

from strongroom.servers.faults import RULES_MAX
from strongroom.testing import InProcessServer, Server
from strongroom.testing.faults import Fault, FaultRule
from strongroom.testing.ports import HOST
from strongroom.testing.server import ServerFailed

BROKEN = (ServiceRequestError, ServiceResponseError, IncompleteReadError)


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


@pytest.fixture
def box(server: InProcessServer, request: pytest.FixtureRequest) -> Iterator[ContainerClient]:
    server.faults.clear()
    name = f"box{abs(hash(request.node.name)) % 10**9}"
    service = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
    yield service.create_container(name)
    server.faults.clear()


def outcome(box: ContainerClient, name: str) -> int:
    """The status of one Put Blob."""
    try:
        box.upload_blob(name, b"body", overwrite=True)
    except HttpResponseError as error:
        return error.status_code or 0
    return 201


def test_busy_and_error_do_nothing(server: InProcessServer, box: ContainerClient) -> None:
    server.faults.order(
        FaultRule(operation="Put Blob", resource="*/b?", fault=Fault.BUSY),
        FaultRule(operation="Put Blob", resource="*/e?", fault=Fault.ERROR),
    )
    assert [outcome(box, name) for name in ("b1", "e1", "x1")] == [503, 500, 201]
    assert [blob.name for blob in box.list_blobs()] == ["x1"]
    assert [(count.matched, count.hit) for count in server.faults.counts()] == [(1, 1), (1, 1)]


def test_a_lost_reply_is_of_work_that_was_done(
    server: InProcessServer, box: ContainerClient
) -> None:
    server.faults.order(FaultRule(operation="Put Blob", fault=Fault.LOST_REPLY, times=1))
    assert [outcome(box, "a"), outcome(box, "b")] == [500, 201]
    assert box.download_blob("a").readall() == b"body"


@pytest.mark.parametrize("size_bytes", [10, 100_000])
def test_an_answer_is_cut_in_its_middle(
    server: InProcessServer, box: ContainerClient, size_bytes: int
) -> None:
    blob = box.upload_blob("a", b"x" * size_bytes)
    box.set_container_access_policy({}, public_access="blob")
    server.faults.order(FaultRule(operation="Get Blob", fault=Fault.CUT, times=1))
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    # The SDK would resume the read where the answer ended.
    connection.request("GET", urlsplit(blob.url).path)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        connection.getresponse().read()
    connection.close()
    assert len(box.download_blob("a").readall()) == size_bytes


def test_a_write_is_cut_before_its_answer(server: InProcessServer, box: ContainerClient) -> None:
    server.faults.order(FaultRule(operation="* Blob", fault=Fault.CUT))
    with pytest.raises(BROKEN):
        box.upload_blob("a", b"body")
    with pytest.raises(BROKEN):
        box.delete_blob("a")
    server.faults.clear()
    assert list(box.list_blobs()) == []


def test_a_copy_that_is_held_stays_pending(server: InProcessServer, box: ContainerClient) -> None:
    """B-CPY-17."""
    box.upload_blob("source", b"body")
    box.upload_blob("plain", b"before")
    rule = FaultRule(resource="*/held", fault=Fault.HOLD_COPY)
    server.faults.order(rule)
    held, source = box.get_blob_client("held"), box.get_blob_client("source").url
    missing = box.get_blob_client("missing").url
    with pytest.raises(HttpResponseError):
        held.start_copy_from_url(missing)
    assert held.start_copy_from_url(source, timeout=1)["copy_status"] == "pending"
    with pytest.raises(HttpResponseError) as twice:
        held.start_copy_from_url(source)
    assert twice.value.status_code == 409
    free = box.get_blob_client("free").start_copy_from_url(source)
    assert free["copy_status"] == "success"
    assert held.get_blob_properties().copy.status == "pending"
    server.faults.order(FaultRule(resource="*/other", fault=Fault.HOLD_COPY))
    for _ in range(1000):
        if held.get_blob_properties().copy.status != "pending":
            break
        time.sleep(0.01)
    assert held.download_blob().readall() == b"body"
    assert [count.hit for count in server.faults.counts()] == [0]


def test_a_delay_is_only_a_delay(server: InProcessServer, box: ContainerClient) -> None:
    server.faults.order(FaultRule(delay_s=0.01))
    assert outcome(box, "a") == 201
    assert server.faults.counts()[0].hit == 1


def test_a_script_says_what_happens_to_each(server: InProcessServer, box: ContainerClient) -> None:
    script = (Fault.PASS, Fault.BUSY, Fault.LOST_REPLY)
    server.faults.order(FaultRule(operation="Put Blob", skip=1, script=script))
    assert [outcome(box, str(n)) for n in range(6)] == [201, 201, 503, 500, 201, 201]


def test_the_same_seed_hits_the_same_requests(
    server: InProcessServer, box: ContainerClient
) -> None:
    rule = FaultRule(operation="put blob", fault=Fault.BUSY, probability=0.5)
    runs = []
    for seed in (7, 7, 8):
        server.faults.order(rule, seed=seed)
        runs.append([outcome(box, str(n)) for n in range(24)])
    assert runs[0] == runs[1] != runs[2]
    assert {201, 503} == set(runs[0])


def test_what_is_no_operation_matches_only_what_matches_all(
    server: InProcessServer, box: ContainerClient
) -> None:
    server.faults.order(FaultRule(operation="?*", fault=Fault.BUSY), FaultRule(fault=Fault.ERROR))
    assert outcome(box, "a") == 503
    service = BlobServiceClient(f"{server.url}/x/y/%zz", retry_total=0)
    with pytest.raises(AzureError):
        service.get_service_properties()


@pytest.mark.parametrize("kind", [InProcessServer, Server])
def test_a_server_without_a_test_clock_takes_no_orders(
    kind: type[InProcessServer] | type[Server],
) -> None:
    with kind.start(test_clock=False) as server:
        with pytest.raises(ServerFailed, match="test-clock"):
            server.faults.order(FaultRule(fault=Fault.BUSY))
        service = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
        service.get_service_properties()


def test_another_process_takes_orders_too() -> None:
    with Server.start() as server:
        server.faults.order(FaultRule(fault=Fault.BUSY, times=1))
        service = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
        with pytest.raises(HttpResponseError):
            service.get_service_properties()
        service.get_service_properties()


@pytest.mark.parametrize(
    "rules",
    [
        [FaultRule(probability=2.0)],
        [FaultRule(delay_s=-1.0)],
        [FaultRule(delay_s=1e9)],
        [FaultRule(skip=-1)],
        [FaultRule(operation="x" * 2000)],
        [FaultRule()] * (RULES_MAX + 1),
    ],
)
def test_orders_that_cannot_be_followed_are_refused(
    server: InProcessServer, rules: list[FaultRule]
) -> None:
    with pytest.raises(ServerFailed):
        server.faults.order(*rules)
    assert server.faults.counts() == []
