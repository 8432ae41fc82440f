"""One line in the access log for each request, whichever way its answer was made."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.app import App
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, ObservationSettings, Settings
from tests.app.logged import SECOND_KEY, Logged
from tests.auth.tokens import claims, unsigned
from tests.conformance import blob_batches
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential, raw
from tests.conformance.sas import account_sas, service_sas
from tests.servers.smb.sockets import SmbMount

NAME = DEVELOPMENT_ACCOUNT_NAME
OWNER = {"type": "Account Key", "tokenHash": "key1", "account": NAME}


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    with Logged(tmp_path) as made:
        yield made


def test_a_write_and_a_read(logged: Logged) -> None:
    client = logged.client()
    fields = {"x-ms-client-request-id": "mine", "User-Agent": "agent/1", "Referer": "http://there/"}
    expect(client.put("/box?restype=container"), 201)
    made = expect(client.put("/box/dir/b%C3%A4r", {**PUT_BLOB, **fields}, b"12345"), 201)
    got = expect(client.get("/box/dir/b%C3%A4r", fields), 200)
    _, put, get = logged.lines(3)
    assert {
        name: put[name] for name in ("category", "operationName", "statusCode", "statusText")
    } == {
        "category": "StorageWrite",
        "operationName": "PutBlob",
        "statusCode": 201,
        "statusText": "Success",
    }
    assert put["identity"] == get["identity"] == OWNER
    assert put["correlationId"] == made["x-ms-request-id"]
    assert put["protocol"] == "HTTP"
    assert put["callerIpAddress"] == "127.0.0.1"
    assert put["schemaVersion"] == "1.0"
    assert put["uri"] == f"{client.url}/box/dir/b%C3%A4r"
    assert put["operationVersion"] == "2025-11-05"
    assert put["time"].endswith("Z")
    assert 0 < put["properties"]["engineMs"] <= put["durationMs"]
    assert put["properties"]["etag"] == made.etag
    shown = {**put["properties"], "engineMs": 0, "etag": "", "responseHeaderSize": 0}
    assert shown == {
        "accountName": NAME,
        "serviceType": "blob",
        "listener": "blob",
        "objectKey": f"/{NAME}/box/dir/b\xe4r",
        "etag": "",
        "userAgentHeader": "agent/1",
        "referrerHeader": "http://there/",
        "clientRequestId": "mine",
        "engineMs": 0,
        "requestBodySize": 5,
        "responseHeaderSize": 0,
        "responseBodySize": 0,
    }
    assert get["operationName"] == "GetBlob"
    assert get["category"] == "StorageRead"
    assert get["properties"]["responseBodySize"] == 5
    assert get["properties"]["responseHeaderSize"] > 100
    assert get["correlationId"] == got["x-ms-request-id"] != put["correlationId"]


def test_a_refusal_names_its_error_and_the_rule(logged: Logged) -> None:
    client = logged.client()
    expect(client.get("/box/blob"), 404, "ContainerNotFound")
    line = logged.last(1)
    assert (line["statusCode"], line["statusText"]) == (404, "ContainerNotFound")
    assert line["properties"]["refusedBy"].startswith("services.")
    expect(client.head("/box/blob"), 404, "ContainerNotFound")
    assert logged.last(2)["properties"]["responseBodySize"] == 0
    expect(client.delete("/box?restype=container"), 404, "ContainerNotFound")
    assert logged.last(3)["category"] == "StorageDelete"


def test_old_versions_have_their_error_too(logged: Logged) -> None:
    expect(logged.client().get("/box/blob", {"x-ms-version": "2015-02-21"}), 404)
    assert logged.last(1)["statusText"] == "ContainerNotFound"


def test_the_second_key(logged: Logged) -> None:
    key = base64.b64encode(SECOND_KEY).decode()
    port = logged.settings.blob_port
    expect(Client(port, Credential(NAME, key)).get("/?comp=list"), 200)
    assert logged.last(1)["identity"] == {**OWNER, "tokenHash": "key2"}


def test_a_wrong_signature_is_no_identity(logged: Logged) -> None:
    wrong = base64.b64encode(b"wrong").decode()
    client = Client(logged.settings.blob_port, Credential(NAME, wrong))
    expect(client.get("/?comp=list"), 403, "AuthenticationFailed")
    line = logged.last(1)
    assert line["identity"] == {"type": "Account Key", "isVerified": False}
    assert line["statusText"] == "AuthenticationFailed"
    assert line["properties"]["refusedBy"] == "auth.shared_key.verify"
    assert line["properties"]["accountName"] == NAME


def test_nobody(logged: Logged) -> None:
    expect(logged.client().anonymous.get("/box/blob"), 401, "NoAuthenticationInformation")
    line = logged.last(1)
    assert line["identity"] == {"type": "Anonymous"}
    assert line["statusText"] == "NoAuthenticationInformation"


def test_a_sas_is_named_by_its_policy_and_the_hash_of_its_signature(logged: Logged) -> None:
    client = logged.client()
    expect(client.put("/box?restype=container"), 201)
    token = service_sas(logged.credential, "box", sp="rl")
    expect(client.get(f"/box?restype=container&comp=list&{token}", auth=None), 200)
    line = logged.last(2)
    signature = dict(pair.split("=", 1) for pair in token.split("&"))["sig"]
    plain = signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
    digest = hashlib.sha256(plain.encode()).hexdigest().upper()
    assert line["identity"] == {
        "type": "SAS Key",
        "tokenHash": f"key1,SasSignature({digest})",
        "sasKind": "service SAS",
        "account": NAME,
    }
    assert line["statusText"] == "SASSuccess"
    assert line["uri"].endswith("&sig=-")
    assert signature not in json.dumps(line)


def test_an_account_sas_of_the_second_key(logged: Logged) -> None:
    key = Credential(NAME, base64.b64encode(SECOND_KEY).decode())
    token = account_sas(key, ss="b", srt="s", sp="l")
    for count in (1, 2):  # the second time it is known already
        expect(logged.client().get(f"/?comp=list&{token}", auth=None), 200)
        identity = logged.last(count)["identity"]
        assert identity["sasKind"] == "account SAS"
        assert identity["tokenHash"].startswith("key2,SasSignature(")


def test_a_stored_policy_is_named(logged: Logged) -> None:
    client = logged.client()
    policy = (
        b"<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>"
        b"<Expiry>2099-01-01T00:00:00Z</Expiry><Permission>rl</Permission>"
        b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    expect(client.put("/box?restype=container"), 201)
    expect(client.put("/box?restype=container&comp=acl", body=policy), 200)
    token = service_sas(logged.credential, "box", sp="", si="readers", se="")
    expect(client.get(f"/box?restype=container&comp=list&{token}", auth=None), 200)
    assert logged.last(3)["identity"]["sasIdentifier"] == "readers"


def test_a_bearer_token_is_its_user_and_tenant(logged: Logged) -> None:
    token = unsigned({"alg": "none"}, claims(oid="the-user", tid="the-tenant"))
    fields = {"Authorization": f"Bearer {token}"}
    expect(logged.client().get("/?comp=list", fields, auth=None), 200)
    line = logged.last(1)
    assert line["identity"] == {
        "type": "OAuth",
        "account": NAME,
        "requester": {"objectId": "the-user", "tenantId": "the-tenant"},
    }
    assert line["statusText"] == "OAuthSuccess"


def test_a_preflight_request(logged: Logged) -> None:
    fields = {"Origin": "http://there", "Access-Control-Request-Method": "GET"}
    answer = logged.client().send("OPTIONS", "/box/blob", fields, auth=None)
    expect(answer, 403, "CorsPreflightFailure")
    line = logged.last(1)
    assert line["operationName"].startswith("Preflight")
    assert line["statusText"] == "CorsPreflightFailure"
    assert line["identity"] == {"type": "Anonymous"}


def test_the_servers_own_endpoints(logged: Logged) -> None:
    port = logged.settings.blob_port
    ask = b"GET /.strongroom/%b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert b" 200 " in raw(port, ask % b"health")
    assert b" 404 " in raw(port, ask % b"nothing")
    ready, missing = logged.lines(2)
    assert ready["operationName"] == missing["operationName"] == "OwnEndpoint"
    assert (ready["statusText"], missing["statusText"]) == ("AnonymousSuccess", "NotFound")
    assert "serviceType" not in ready["properties"]
    assert ready["properties"]["listener"] == "blob"


@pytest.mark.parametrize("service", ["blob", "queue", "table", "file"])
def test_every_service_also_on_the_port_of_all(logged: Logged, service: str) -> None:
    port = logged.settings.one_port
    assert port is not None
    kind = "files" if service == "file" else service
    raw(port, f"GET /{service}/{NAME}/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
    line = logged.last(1)
    assert (line["properties"]["serviceType"], line["properties"]["listener"]) == (kind, "all")


def test_a_url_of_no_service(logged: Logged) -> None:
    assert logged.settings.one_port is not None
    raw(logged.settings.one_port, b"GET /nothing HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    line = logged.last(1)
    assert line["statusText"] == "InvalidUri"
    assert line["properties"]["refusedBy"] == "servers.one_port.OnePort.route"
    assert line["uri"] == "http://h/nothing"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"no request\r\n\r\n", 400),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"x" * 100_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\n" + b"a: b\r\n" * 1000 + b"\r\n", 431),
    ],
)
def test_bytes_that_are_no_request(logged: Logged, sent: bytes, status: int) -> None:
    answer = raw(logged.settings.blob_port, sent)
    line = logged.last(1)
    assert answer.split(b" ")[1] == str(line["statusCode"]).encode()
    assert line["statusCode"] == status
    assert line["operationName"] == "Unknown"
    assert line["uri"] == ""
    assert line["callerIpAddress"] == "127.0.0.1"
    assert line["properties"]["refusedBy"].startswith("servers.http.")
    assert line["correlationId"].encode() in answer


def test_a_client_that_leaves_before_its_answer(logged: Logged) -> None:
    client = logged.client()
    expect(client.put("/box?restype=container"), 201)
    body = bytes(32 << 20)  # more than the buffers of both ends take
    expect(client.put("/box/large", PUT_BLOB, body), 201)
    token = service_sas(logged.credential, "box", "large")
    with socket.create_connection(("127.0.0.1", logged.settings.blob_port)) as connection:
        target = f"{client.prefix}/box/large?{token}"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        linger = b"\x01\0\0\0\0\0\0\0"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    line = logged.last(3)
    assert line["statusCode"] == 200
    assert line["properties"]["interrupted"] is True
    assert line["properties"]["responseBodySize"] < len(body)


def test_a_batch_has_a_line_and_so_has_each_part(logged: Logged) -> None:
    client = logged.client()
    expect(client.put("/box?restype=container"), 201)
    expect(client.put("/box/one", PUT_BLOB, b"1"), 201)
    parts = [blob_batches.Part("DELETE", "/box/one"), blob_batches.Part("DELETE", "/box/two")]
    answer = blob_batches.send(client, *parts)
    whole, one, two = logged.lines(5)[2:]
    assert whole["operationName"] == "BlobBatch"
    assert "operationCount" not in whole["properties"]
    assert whole["correlationId"] == one["correlationId"] == two["correlationId"]
    assert [part["operationName"] for part in (one, two)] == ["DeleteBlob", "DeleteBlob"]
    assert [part["statusText"] for part in (one, two)] == ["Success", "BlobNotFound"]
    assert [part["properties"]["operationCount"] for part in (one, two)] == [1, 2]
    assert [part["properties"]["objectKey"] for part in (one, two)] == [
        f"/{NAME}/box/one",
        f"/{NAME}/box/two",
    ]
    assert two["properties"]["refusedBy"].startswith("services.blob.")
    assert [part["category"] for part in (one, two)] == ["StorageDelete"] * 2
    for part, answered in zip((one, two), answer, strict=True):
        assert part["properties"]["partRequestId"] == answered.headers["x-ms-request-id"]


def _transaction(*rows: str) -> tuple[dict[str, str], bytes]:
    lines = ["--b", "Content-Type: multipart/mixed; boundary=c", ""]
    for row in rows:
        entity = json.dumps({"PartitionKey": "p", "RowKey": row, "Secret": "content"})
        lines += [
            *("--c", "Content-Type: application/http", "Content-Transfer-Encoding: binary", ""),
            *(f"POST /{NAME}/people HTTP/1.1", "Content-Type: application/json", "", entity),
        ]
    lines += ["--c--", "--b--", ""]
    return {"Content-Type": "multipart/mixed; boundary=b"}, "\r\n".join(lines).encode()


def test_a_transaction_has_a_line_and_so_has_each_part(logged: Logged) -> None:
    client = logged.client("table")
    table = {"Content-Type": "application/json"}
    expect(client.send("POST", "/Tables", table, b'{"TableName": "people"}'), 201)
    fields, body = _transaction("a", "b")
    expect(client.send("POST", "/$batch", fields, body), 202)
    whole, one, two = logged.lines(4)[1:]
    assert whole["properties"]["serviceType"] == "table"
    assert [part["properties"]["operationCount"] for part in (one, two)] == [1, 2]
    assert {part["operationName"] for part in (one, two)} == {"InsertEntity"}
    assert one["identity"] == OWNER
    assert one["correlationId"] == whole["correlationId"]
    expect(client.send("POST", "/$batch", *_transaction("c", "a")), 202)
    whole, refused = logged.lines(6)[4:]
    assert whole["statusText"] == "Success"
    assert refused["statusText"] == "EntityAlreadyExists"
    assert refused["properties"]["operationCount"] == 2
    assert b"content" not in logged.path.read_bytes()


def test_names_can_be_hashed_with_a_key_of_the_account(tmp_path: Path) -> None:
    with Logged(tmp_path, names="hash") as logged:
        client = logged.client()
        expect(client.put("/box?restype=container"), 201)
        expect(client.put("/box/secret-plan", PUT_BLOB, b"1"), 201)
        expect(client.get("/box?restype=container&comp=list&prefix=secret-plan"), 200)
        made, put, found = logged.lines(3)
        written = logged.path.read_bytes()
    account_key = base64.b64decode(DEVELOPMENT_ACCOUNT_KEY)
    key = hmac.digest(account_key, b"strongroom access log: names", "sha256")
    digest = hmac.digest(key, f"/{NAME}/box/secret-plan".encode(), "sha256").hex()
    assert put["properties"]["objectKey"] == f"/{NAME}/box/{digest}"
    assert put["uri"] == f"{client.url}/box/{digest}"
    assert made["properties"]["objectKey"] == f"/{NAME}/box"
    assert found["uri"].endswith("&prefix=-")
    assert b"secret-plan" not in written


def test_names_can_be_left_out(tmp_path: Path) -> None:
    with Logged(tmp_path, names="off", smb=True) as logged:
        client = logged.client()
        expect(client.put("/box?restype=container"), 201)
        expect(client.put("/box/secret-plan", PUT_BLOB, b"1"), 201)
        raw(logged.settings.blob_port, b"GET /secret-plan%zz HTTP/1.1\r\nConnection: close\r\n\r\n")
        client = logged.client("table")
        client.get("/people(PartitionKey='secret-plan',RowKey='secret-plan')")
        lines = logged.lines(4)
        assert lines[1]["properties"]["objectKey"] == f"/{NAME}/box/-"
        assert lines[1]["uri"].endswith("/box/-")
        assert b"secret-plan" not in logged.path.read_bytes()


@pytest.mark.parametrize("name", ["a%0Ab", "%1B%5B2J", "%22%7D%7B", "%E2%80%A8", "%C2%9B", "a%5Cb"])
def test_hostile_names_stay_in_one_line(logged: Logged, name: str) -> None:
    logged.client().get(f"/box/{name}")
    logged.last(1)
    written = logged.path.read_bytes()
    assert all(0x20 <= byte < 0x7F for byte in written[:-1])


def test_names_that_are_no_utf_8_and_agents_that_are_too_long(logged: Logged) -> None:
    port = logged.settings.blob_port
    raw(
        port,
        b"GET /a/\xff%ff?\xff=\x80 HTTP/1.1\r\nHost: \xff\r\nConnection: close\r\n"
        b"User-Agent: \xff\x9b\r\n\r\n",
    )
    agent = {"User-Agent": "a" * 60_000}
    logged.client().get("/box/blob", agent)
    logged.lines(2)
    first, second = logged.path.read_bytes().splitlines()
    assert all(0x20 <= byte < 0x7F for byte in first)
    assert json.loads(first)["statusCode"] == 400
    found = json.loads(second)["properties"]["userAgentHeader"]
    assert found == "a" * 4096


def test_messages_of_smb(tmp_path: Path) -> None:
    with Logged(tmp_path, smb=True) as logged:
        assert logged.settings.smb is not None
        expect(logged.client("file").put("/share?restype=share"), 201)
        port = logged.settings.smb.port

        async def use() -> None:
            async with SmbMount(port, "share") as mount:
                await mount.create("x.txt")

        asyncio.run(use())
        logged.server.stop()
        found = [json.loads(line) for line in logged.path.read_text().splitlines()]
        messages = [line for line in found if line["protocol"] == "SMB"]
        by_name = {line["operationName"]: line for line in messages}
        assert {"Negotiate", "SessionSetup", "TreeConnect", "Create"} <= by_name.keys()
        create = by_name["Create"]
        assert create["identity"] == {"type": "NTLM", "account": NAME}
        assert create["properties"]["objectKey"] == f"/{NAME}/share/x.txt"
        assert create["properties"]["serviceType"] == "files"
        assert create["properties"]["smbCommandMajor"] == 5
        assert create["properties"]["engineMs"] >= 0
        assert by_name["TreeConnect"]["properties"]["objectKey"] == f"/{NAME}/share"
        assert by_name["Negotiate"]["identity"] == {"type": "Anonymous"}
        assert len({line["callerIpAddress"] for line in messages}) == 1


def test_the_end_of_the_server_writes_what_is_queued(tmp_path: Path) -> None:
    with Logged(tmp_path) as logged:
        client = logged.client()
        for _ in range(50):
            client.get("/?comp=list")
    assert len(logged.path.read_bytes().splitlines()) == 50


def test_the_counts_are_metrics(logged: Logged) -> None:
    logged.client().get("/?comp=list")
    logged.lines(1)
    ask = b"GET /.strongroom/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = raw(logged.settings.blob_port, ask).decode()
    assert "strongroom_access_log_lines_total 1.0" in answer
    assert "strongroom_access_log_dropped_lines_total 0.0" in answer
    assert "strongroom_access_log_failures_total 0.0" in answer


def test_requests_are_served_while_the_log_cannot_be_written(logged: Logged) -> None:
    client = logged.client()
    client.get("/?comp=list")
    logged.lines(1)
    logged.path.rename(logged.path.with_suffix(".1"))
    logged.path.mkdir()
    expect(client.get("/?comp=list"), 200)
    ask = b"GET /.strongroom/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    deadline = time.monotonic() + 30
    while "strongroom_access_log_failures_total 0.0" in raw(client.port, ask).decode():
        assert time.monotonic() < deadline
    logged.path.rmdir()
    expect(client.get("/?comp=list"), 200)
    logged.server.stop()
    found = [json.loads(line)["operationName"] for line in logged.path.read_text().splitlines()]
    assert found.count("ListContainers") == 2


@pytest.mark.parametrize("more", [{}, {"data": "data"}])
def test_a_log_that_cannot_be_opened_is_an_error_at_the_start(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    data = tmp_path / more["data"] if more else None
    log = str(tmp_path / "missing" / "log")
    settings = Settings(
        data=data,
        blob_port=0,
        queue_port=0,
        table_port=0,
        file_port=0,
        observation=ObservationSettings(log),
    )

    async def start() -> None:
        await App(settings, SystemClock()).start()

    with pytest.raises(ConfigError, match=r"--access-log: .*missing"):
        asyncio.run(start())
