"""One port for all services: the official SDK of each, SharedKey, SAS, copies, host names."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.data.tables import (
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_table_sas,
)
from azure.storage.blob import (
    AccountSasPermissions,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
)
from azure.storage.queue import (
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    generate_queue_sas,
)

from strongroom.auth.accounts import Account
from strongroom.config import AccountSources, Settings
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import InProcessServer
from tests.conformance import blob_batches as batches
from tests.conformance.answer import expect
from tests.conformance.blob_batches import delete
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.copying import ended

KEY = base64.b64encode(b"a key of this test's own" * 2).decode()
# Names that the first segment of the path could be mistaken for.
ACCOUNTS = ("devaccount1", "blob", "queue", "table")
SUFFIX = "storage.test"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of all services of a server."""
    accounts = tuple(Account(name, (base64.b64decode(KEY),)) for name in ACCOUNTS)
    settings = Settings(
        data=None,
        blob_port=free_port(),
        queue_port=free_port(),
        table_port=free_port(),
        file_port=free_port(),
        one_port=free_port(),
        accounts=AccountSources(accounts),
        host_suffixes=(SUFFIX, "queue.other.test"),
        test_clock=True,
        strict=True,
    )
    assert settings.one_port is not None
    with InProcessServer(settings):
        yield settings.one_port


def endpoint(port: int, service: str, account: str) -> str:
    """Return the account URL, as SDKs call it."""
    return f"http://{HOST}:{port}/{service}/{account}"


def connection_string(port: int, account: str) -> str:
    """Return an account's connection string, as the start-up text shows it."""
    endpoints = "".join(
        f"{service.title()}Endpoint={endpoint(port, service, account)};"
        for service in ("blob", "queue", "table")
    )
    return f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={KEY};{endpoints}"


def an_hour_from_now() -> datetime:
    """When tokens end."""
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture(params=ACCOUNTS)
def account(request: pytest.FixtureRequest) -> str:
    """Each account in turn."""
    return str(request.param)


def blob_container(port: int, account: str, name: str) -> ContainerClient:
    """A new container."""
    service = BlobServiceClient.from_connection_string(
        connection_string(port, account), retry_total=0
    )
    return service.create_container(name)


def test_blobs(port: int, account: str) -> None:
    container = blob_container(port, account, "blobs")
    names = ["a", "b/c", "q?&=+ %41 \u00fc"]
    for name in names:
        container.upload_blob(name, name.encode())
        assert container.download_blob(name).readall() == name.encode()
    pages = container.list_blobs(results_per_page=2)
    assert [blob.name for blob in pages] == sorted(names)
    snapshot = container.get_blob_client("a").create_snapshot()
    container.upload_blob("a", b"newer", overwrite=True)
    assert (
        container.get_blob_client("a", snapshot=str(snapshot["snapshot"])).download_blob().readall()
        == b"a"
    )
    container.delete_blob("a", delete_snapshots="include")
    assert not container.get_blob_client("a").exists()


def test_blobs_by_sas(port: int, account: str) -> None:
    container = blob_container(port, account, "shared")
    container.upload_blob("b/c", b"text")
    token = generate_blob_sas(
        account,
        "shared",
        "b/c",
        account_key=KEY,
        permission=BlobSasPermissions(read=True),
        expiry=an_hour_from_now(),
    )
    url = f"{endpoint(port, 'blob', account)}/shared/b/c"
    assert BlobClient.from_blob_url(f"{url}?{token}").download_blob().readall() == b"text"
    whole = generate_account_sas(
        account,
        KEY,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, list=True),
        an_hour_from_now(),
    )
    service = BlobServiceClient(endpoint(port, "blob", account), AzureSasCredential(whole))
    assert [one.name for one in service.get_container_client("shared").list_blobs()] == ["b/c"]
    with pytest.raises(ClientAuthenticationError):
        BlobClient.from_blob_url(url, retry_total=0).download_blob()


def test_a_key_that_is_not_the_accounts_is_refused(port: int) -> None:
    wrong = connection_string(port, "devaccount1").replace(KEY, base64.b64encode(b"x").decode())
    with pytest.raises(ClientAuthenticationError):
        BlobServiceClient.from_connection_string(wrong, retry_total=0).get_account_information()


def test_the_secondary_is_read(port: int) -> None:
    blob_container(port, "devaccount1", "twice").upload_blob("b", b"text")
    client = Client(port, Credential("devaccount1", KEY), prefix="/blob/devaccount1-secondary")
    assert client.get("/twice/b").body == b"text"
    assert client.put("/twice/b", PUT_BLOB, b"x").status == 403


def test_queues(port: int, account: str) -> None:
    service = QueueServiceClient.from_connection_string(connection_string(port, account))
    queue = service.create_queue("tasks")
    sent = queue.send_message("first")
    queue.update_message(sent.id, sent.pop_receipt, content="second", visibility_timeout=0)
    (message,) = queue.receive_messages()
    assert message.content == "second"
    queue.delete_message(message)
    assert [one.name for one in service.list_queues()] == ["tasks"]
    token = generate_queue_sas(
        account,
        "tasks",
        KEY,
        permission=QueueSasPermissions(add=True, process=True),
        expiry=an_hour_from_now(),
    )
    shared = QueueClient.from_queue_url(f"{endpoint(port, 'queue', account)}/tasks?{token}")
    shared.send_message("third")
    assert [one.content for one in shared.receive_messages()] == ["third"]


def test_tables(port: int, account: str) -> None:
    service = TableServiceClient.from_connection_string(connection_string(port, account))
    people = service.create_table("People")
    people.upsert_entity({"PartitionKey": "p", "RowKey": "r 1", "Age": 7})
    assert people.get_entity("p", "r 1")["Age"] == 7
    changes = [("upsert", {"PartitionKey": "p", "RowKey": str(row)}) for row in range(3)]
    people.submit_transaction(changes)
    assert len(list(people.query_entities("PartitionKey eq 'p'", results_per_page=2))) == 4
    assert [one.name for one in service.list_tables()] == ["People"]
    token = generate_table_sas(
        AzureNamedKeyCredential(account, KEY),
        "People",
        permission=TableSasPermissions(read=True, add=True),
        expiry=an_hour_from_now(),
    )
    url = endpoint(port, "table", account)
    shared = TableClient(url, "People", credential=AzureSasCredential(token))
    assert shared.get_entity("p", "r 1")["Age"] == 7
    shared.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "by SAS"})])
    people.delete_table()


def test_a_table_named_like_the_account_and_the_service(port: int) -> None:
    """Relative and absolute URLs of a batch's parts are read in the same way."""
    service = TableServiceClient.from_connection_string(connection_string(port, "table"))
    table = service.create_table("table")
    table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "r"})])
    token = generate_table_sas(
        AzureNamedKeyCredential("table", KEY),
        "table",
        permission=TableSasPermissions(read=True),
        expiry=an_hour_from_now(),
    )
    for url in (
        "/table/table/table(PartitionKey='p',RowKey='r')",
        "/table/table(PartitionKey='p',RowKey='r')",
        "table(PartitionKey='p',RowKey='r')",
    ):
        body = (
            "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"GET {url} HTTP/1.1\r\nAccept: application/json;odata=fullmetadata\r\n\r\n\r\n--b--"
        )
        answer = Client(port, Credential("table", KEY), None, "/table/table").send(
            "POST",
            f"/$batch?{token}",
            {"Content-Type": "multipart/mixed; boundary=b"},
            body.encode(),
        )
        assert answer.status == 202
        assert b"HTTP/1.1 200 OK" in answer.body, (url, answer.body)


def test_a_batch_of_blobs(port: int, account: str) -> None:
    """B-BAT-01. A container has the name of the first segment, and of an account."""
    for container in (blob_container(port, account, name) for name in ("batch", "blob")):
        names = ["a", "b/c", "q?&=+ %41 \u00fc", "kept"]
        for name in names:
            container.upload_blob(name, b"x")
        found = container.set_standard_blob_tier_blobs("Cool", *names)
        assert [one.status_code for one in found] == [200] * len(names)
        found = container.delete_blobs(*names[:3])
        assert [one.status_code for one in found] == [202] * 3
        assert list(container.list_blob_names()) == ["kept"]


@pytest.mark.parametrize("style", ["path", "mixed"])
@pytest.mark.parametrize("here", [False, True])
def test_urls_of_a_batch_of_blobs(port: int, account: str, style: str, here: bool) -> None:
    """B-BAT-06. A URL names the resource with and without the segment and the account."""
    full = f"/blob/{account}" if style == "path" else "/blob"
    leads = [full, "", f"http://{HOST}:1{full}", f"/{account}" if style == "path" else ""]
    container = blob_container(port, account, f"urls-{style}-{here}".lower())
    parts = []
    for number, lead in enumerate(leads):
        name = f"x/{number}"
        container.upload_blob(name, b"x")
        parts.append(delete(f"/{container.container_name}/{name}", prefix=lead))
    client = Client(port, Credential(account, KEY), prefix=full)
    data = batches.body(client, parts)
    headers = {"Content-Type": batches.TYPE}
    if style == "mixed":
        headers["Host"] = f"{account}.{SUFFIX}:{port}"
    target = batches.of(container.container_name) if here else batches.WHOLE
    found = batches.answers(client.send("POST", target, headers, data))
    assert [one.seen for one in found] == [(202, None)] * 4
    assert list(container.list_blob_names()) == []


def test_answers_name_the_endpoint_with_its_segment(port: int) -> None:
    service = TableServiceClient.from_connection_string(connection_string(port, "devaccount1"))
    service.create_table("Named")
    token = generate_table_sas(
        AzureNamedKeyCredential("devaccount1", KEY),
        "Named",
        permission=TableSasPermissions(read=True, add=True),
        expiry=an_hour_from_now(),
    )
    client = Client(port, Credential("devaccount1", KEY), None, "/table/devaccount1")
    sent = json.dumps({"PartitionKey": "p", "RowKey": "r"}).encode()
    made = client.send("POST", f"/Named?{token}", {"Content-Type": "application/json"}, sent)
    assert made.status == 201
    base = endpoint(port, "table", "devaccount1")
    assert made["Location"] == f"{base}/Named(PartitionKey='p',RowKey='r')"
    assert json.loads(made.body)["odata.metadata"].startswith(f"{base}/$metadata#Named")
    blobs = Client(port, Credential("devaccount1", KEY), prefix="/blob/devaccount1")
    listed = blobs.get("/?comp=list").body
    assert f'ServiceEndpoint="{endpoint(port, "blob", "devaccount1")}/"'.encode() in listed


def test_a_copy_source_of_this_port_is_this_servers_own(port: int) -> None:
    container = blob_container(port, "devaccount1", "copies")
    source = container.upload_blob("source", b"text")
    for host in (HOST, "localhost"):
        target = container.get_blob_client(f"from-{host}")
        target.start_copy_from_url(source.url.replace(HOST, host))
        assert target.download_blob().readall() == b"text"
    # The Blob service's own port leads to the same blob, and a queue is no source.
    missing = source.url.replace("/blob/", "/queue/", 1)
    client = Client(port, Credential("devaccount1", KEY), prefix="/blob/devaccount1")
    refused = client.put("/copies/never", {"x-ms-copy-source": missing})
    assert (refused.status, refused.code) == (404, "CannotVerifyCopySource")
    nothing = client.put("/copies/never", {"x-ms-copy-source": f"http://{HOST}:{port}/x/y/z"})
    assert (nothing.status, nothing.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("account", ["devaccount1", "table"])
def test_files_and_blobs_of_this_port_are_copied_to_each_other(port: int, account: str) -> None:
    """F-CPY-01."""
    blobs = Client(port, Credential(account, KEY), prefix=f"/blob/{account}")
    files = Client(port, Credential(account, KEY), prefix=f"/file/{account}")
    expect(blobs.put("/both?restype=container"), 201)
    expect(blobs.put("/both/b", PUT_BLOB, b"text"), 201)
    expect(files.put("/both?restype=share"), 201)
    expect(files.put("/both/f", {"x-ms-copy-source": f"{blobs.url}/both/b"}), 202)
    ended(files, "/both/f")
    assert files.get("/both/f").body == b"text"
    for count, source in enumerate(
        (
            f"{files.url}/both/f",
            f"{files.url.replace(HOST, 'localhost')}/both/f",
            f"http://{account}.file.localhost:{port}/both/f",
        )
    ):
        for client, target in ((files, f"/both/f{count}"), (blobs, f"/both/b{count}")):
            expect(client.put(target, {"x-ms-copy-source": source}), 202)
            ended(client, target)
            assert client.get(target).body == b"text"
    missing = f"http://{HOST}:{port}/queue/{account}/both/f"
    refused = files.put("/both/g", {"x-ms-copy-source": missing})
    expect(refused, 404, "CannotVerifyCopySource")
    for client in (blobs, files):
        client.close()


def ask(port: int, host: str, target: str) -> tuple[int, bytes]:
    """GET without credentials, under another name of the host."""
    connection = http.client.HTTPConnection(HOST, port, timeout=20)
    try:
        connection.request("GET", target, headers={"Host": host, "x-ms-version": "2021-12-02"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_host_that_names_the_service_decides(port: int) -> None:
    service = QueueServiceClient.from_connection_string(connection_string(port, "devaccount1"))
    service.create_queue("blob")
    token = generate_queue_sas(
        "devaccount1",
        "blob",
        KEY,
        permission=QueueSasPermissions(read=True, process=True),
        expiry=an_hour_from_now(),
    )
    for host in ("devaccount1.queue.localhost", "devaccount1.queue.other.test"):
        # A queue that is called as another service's segment is.
        assert ask(port, f"{host}:{port}", f"/blob/messages?{token}")[0] == 200
    mixed = f"/queue/blob/messages?{token}"
    assert ask(port, f"devaccount1.{SUFFIX}:{port}", mixed)[0] == 200
    assert ask(port, f"devaccount1.table.localhost:{port}", f"/blob/messages?{token}")[0] != 200


@pytest.mark.parametrize("target", ["/", "/devaccount1/c/b", "/Blob/devaccount1", "/%62lob/x", "*"])
def test_a_url_without_a_service_is_refused_with_the_remedy(port: int, target: str) -> None:
    status, body = ask(port, f"{HOST}:{port}", target)
    assert status == 400
    assert b"<Code>InvalidUri</Code>" in body
    assert b"/blob/ACCOUNT/" in body


@pytest.mark.parametrize("target", ["/blob", "/blob/", "/table//x"])
def test_a_url_without_an_account_is_refused(port: int, target: str) -> None:
    status, body = ask(port, f"{HOST}:{port}", target)
    assert status == 400
    assert b"InvalidUri" in body


def test_the_servers_own_endpoints_are_here_too(port: int) -> None:
    status, body = ask(port, f"{HOST}:{port}", "/.strongroom/health")
    assert status == 200
    assert json.loads(body)["status"] == "ready"
