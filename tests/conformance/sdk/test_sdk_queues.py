"""The official SDK works with queues and messages, SAS and policies, its errors included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    Metrics,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    RetentionPolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
    generate_queue_sas,
)

from tests.conformance.client import Client
from tests.conformance.running import Running


@pytest.fixture
def service(queue_account: Client) -> QueueServiceClient:
    """The SDK's client of an account of its own."""
    return QueueServiceClient(queue_account.url, queue_account.credential.key, retry_total=0)


@pytest.fixture
def tasks(service: QueueServiceClient) -> QueueClient:
    """A new queue."""
    return service.create_queue("tasks")


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    """The error code, which the SDK puts on each error that it raises."""
    return vars(raised.value)["error_code"]


def test_the_life_of_a_queue(service: QueueServiceClient) -> None:
    """Q-QUE-01, Q-QUE-02, Q-QUE-04, Q-QUE-06."""
    tasks = service.create_queue("tasks", metadata={"owner": "Ann"})
    with pytest.raises(ResourceExistsError, match="Queue already exists"):
        # Answered 204: the SDK makes an error of that itself.
        service.create_queue("tasks", metadata={"owner": "Ann"})
    with pytest.raises(ResourceExistsError) as taken:
        service.create_queue("tasks")
    assert code(taken) == "QueueAlreadyExists"
    tasks.set_queue_metadata({"owner": "Bob"})
    assert tasks.get_queue_properties().metadata == {"owner": "Bob"}
    assert [queue.name for queue in service.list_queues(include_metadata=True)] == ["tasks"]
    tasks.delete_queue()
    with pytest.raises(ResourceNotFoundError) as gone:
        tasks.send_message("x")
    assert code(gone) == "QueueNotFound"


def test_the_life_of_a_message(server: Running, tasks: QueueClient) -> None:
    """Q-PUT-01, Q-GET-02, Q-UPD-01, Q-DEL-01, Q-POP-02."""
    sent = tasks.send_message("do <this> & that", time_to_live=-1)
    assert sent.id and sent.pop_receipt
    (seen,) = tasks.peek_messages(5)
    assert (seen.content, seen.dequeue_count) == ("do <this> & that", 0)
    first = tasks.receive_message(visibility_timeout=40)
    assert first is not None and first.dequeue_count == 1
    assert tasks.receive_message() is None
    server.advance(41)
    second = tasks.receive_message(visibility_timeout=40)
    assert second is not None and second.dequeue_count == 2
    with pytest.raises(ResourceNotFoundError) as stale:
        tasks.delete_message(first)
    assert code(stale) == "MessageNotFound"
    updated = tasks.update_message(second, content="done half", visibility_timeout=0)
    third = tasks.receive_message()
    assert third is not None and third.content == "done half"
    with pytest.raises(ResourceNotFoundError):
        tasks.delete_message(updated)
    assert tasks.get_queue_properties().approximate_message_count == 1
    tasks.delete_message(third)
    assert tasks.get_queue_properties().approximate_message_count == 0


def test_pages_of_messages(tasks: QueueClient) -> None:
    """Q-GET-03, Q-GET-05."""
    for number in range(70):
        tasks.send_message(str(number))
    pages = tasks.receive_messages(messages_per_page=32, visibility_timeout=600).by_page()
    sizes = []
    found = []
    for page in pages:
        batch = list(page)
        sizes.append(len(batch))
        found += [message.content for message in batch]
    assert sizes[:3] == [32, 32, 6]
    assert found == [str(number) for number in range(70)]


def test_encodings(service: QueueServiceClient, queue_account: Client, tasks: QueueClient) -> None:
    """Q-PUT-07, Q-PUT-08."""
    text = QueueClient(
        queue_account.url,
        "tasks",
        queue_account.credential.key,
        message_encode_policy=TextBase64EncodePolicy(),
        message_decode_policy=TextBase64DecodePolicy(),
    )
    text.send_message("漢字 <&>")
    received = text.receive_message()
    assert received is not None and received.content == "漢字 <&>"
    raw = QueueClient(
        queue_account.url,
        "tasks",
        queue_account.credential.key,
        message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy(),
    )
    body = bytes(range(256)) * 192
    assert len(body) == 48 * 1024
    raw.send_message(body)
    received = raw.receive_message()
    assert received is not None and received.content == body
    with pytest.raises(HttpResponseError) as long:
        raw.send_message(body + b"x")
    assert code(long) == "RequestBodyTooLarge"


def test_what_the_sdk_is_refused(tasks: QueueClient) -> None:
    """Q-POP-01, Q-UPD-03, Q-PUT-05."""
    sent = tasks.send_message("x")
    with pytest.raises(HttpResponseError) as malformed:
        tasks.delete_message(sent.id, "invalid")
    assert code(malformed) == "InvalidQueryParameterValue"
    with pytest.raises(HttpResponseError) as beyond:
        tasks.update_message(sent, visibility_timeout=604_801)
    assert code(beyond) == "OutOfRangeQueryParameterValue"
    with pytest.raises(HttpResponseError) as late:
        tasks.send_message("x", visibility_timeout=10, time_to_live=5)
    assert code(late) == "InvalidQueryParameterValue"
    tasks.clear_messages()
    with pytest.raises(ResourceNotFoundError):
        tasks.delete_message(sent)


def test_sas_and_policies(queue_account: Client, tasks: QueueClient) -> None:
    """Q-QUE-08, Q-QUE-09."""
    later = datetime.now(UTC) + timedelta(hours=1)
    policy = AccessPolicy(permission=QueueSasPermissions(add=True), expiry=later)
    tasks.set_queue_access_policy({"adders": policy})
    assert list(tasks.get_queue_access_policy()) == ["adders"]
    name, key = queue_account.account, queue_account.credential.key
    token = generate_queue_sas(name, "tasks", key, policy_id="adders")
    adder = QueueClient(queue_account.url, "tasks", token, retry_total=0)
    adder.send_message("x")
    with pytest.raises(HttpResponseError) as refused:
        adder.receive_message()
    assert code(refused) == "AuthorizationPermissionMismatch"
    token = generate_queue_sas(
        name, "tasks", key, permission=QueueSasPermissions(process=True), expiry=later
    )
    processor = QueueClient(queue_account.url, "tasks", token, retry_total=0)
    message = processor.receive_message()
    assert message is not None
    processor.delete_message(message)


def test_service_properties(service: QueueServiceClient) -> None:
    """Q-SVC-01."""
    retention = RetentionPolicy(enabled=True, days=5)
    hourly = Metrics(enabled=True, include_apis=True, retention_policy=retention)
    rule = CorsRule(["http://a.example"], ["GET"])
    service.set_service_properties(hour_metrics=hourly, cors=[rule])
    found = service.get_service_properties()
    assert found["hour_metrics"].retention_policy.days == 5
    assert found["cors"][0].allowed_origins == "http://a.example"
