"""No secret that a client sends gets into the access log, wherever it stands.

Each secret is one word that appears in no name. A request of every operation carries secrets in all
headers and parameters that may have one, and the file is searched for the bytes of each.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.config import AccessLogNames
from tests.app.logged import Logged
from tests.auth.tokens import claims, unsigned
from tests.conformance import blob_batches
from tests.conformance.client import PUT_BLOB, Client, raw
from tests.conformance.rows import ROWS, request_of
from tests.conformance.sas import account_sas, service_sas
from tests.operations.transcript import Row, rows

WORD = "Zq7SECRETx9"
KEY = base64.b64encode(WORD.encode() * 3)[:44].decode()
SOURCE = f"https://source.example/box/blob?sv=2021-12-02&sr=b&sp=r&sig={WORD}"
# Each header may have a secret, or the address of something with one.
HEADERS = {
    "x-ms-copy-source": SOURCE,
    "x-ms-rename-source": f"/box/blob?sig={WORD}",
    "x-ms-file-rename-source": f"https://source.example/share/file?sig={WORD}",
    "x-ms-copy-source-authorization": f"Bearer {WORD}",
    "x-ms-file-request-intent": WORD,
    "x-ms-encryption-key": WORD,
    "x-ms-encryption-key-sha256": WORD,
    "x-ms-source-encryption-key": WORD,
    "x-ms-source-encryption-key-sha256": WORD,
    "x-ms-meta-password": WORD,
    "x-ms-tags": f"password={WORD}",
    "x-ms-if-tags": f"password='{WORD}'",
    "x-ms-content-crc64": WORD,
    "Cookie": f"session={WORD}",
    "Proxy-Authorization": f"Basic {WORD}",
    "X-Api-Key": WORD,
}
QUERY = "&".join(
    [
        *(f"sig={WORD}", f"SIG={WORD}", f"s%69g={WORD}", f"amp;sig={WORD}", f"amp%3Bsig%3D{WORD}"),
        *(f"timeout=30%26sig%3D{WORD}", f"url=https%3A%2F%2Fh%2F%3Fsig%3D{WORD}", f"token={WORD}"),
        *(f"%24filter=Password%20eq%20'{WORD}'", f"where=password%3D'{WORD}'", WORD),
        *(f"popreceipt={WORD}", f"NextPartitionKey={WORD}", f"NextRowKey={WORD}", f"code={WORD}"),
        *(f"access_token={WORD}", f"Authorization=Bearer%20{WORD}", f"%24skiptoken={WORD}"),
    ]
)
BODY = json.dumps({"PartitionKey": "p", "RowKey": "r", "Password": WORD}).encode()
MESSAGE = f"<QueueMessage><MessageText>{WORD}</MessageText></QueueMessage>".encode()
SERVICES = ("blob", "queue", "table", "file")
# The word itself, and as base64 in three alignments.
FORMS = (
    WORD.encode(),
    *(base64.b64encode(b"x" * shift + WORD.encode())[4:-4] for shift in (0, 1, 2)),
)


@pytest.fixture(params=["plain", "hash", "off"])
def logged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Logged]:
    names: AccessLogNames = request.param
    with Logged(tmp_path, names) as made:
        yield made


def refuse_secrets(logged: Logged, lines: int) -> None:
    """Stop the server, and search what it has written for every form of the secrets."""
    logged.server.stop()
    written = logged.path.read_bytes()
    assert written.count(b"\n") >= lines
    for form in FORMS:
        assert form.lower() not in written.lower()
    for line in written.splitlines():
        json.loads(line)


def _credentials(logged: Logged) -> list[tuple[str | None, dict[str, str], str]]:
    """Ways to authenticate: the scheme of the client, headers, and the query."""
    token = unsigned({"alg": "none"}, claims(oid="user"), WORD)
    sas = account_sas(logged.credential, ss="bqtf", srt="sco", sp="rwdlacupi")
    return [
        ("SharedKey", {}, ""),
        ("SharedKeyLite", {}, ""),
        (None, {}, sas),
        (None, {"Authorization": f"Bearer {token}"}, ""),
        (None, {"Authorization": f"Bearer {WORD}.{WORD}.{WORD}"}, ""),
        (None, {"Authorization": f"SharedKey devstoreaccount1:{KEY}"}, ""),
        (None, {"Authorization": f"Basic {WORD}"}, ""),
        (None, {"Authorization": WORD}, ""),
        (None, {}, f"sv=2021-12-02&sr=c&sp=r&se=2099-01-01&sig={WORD}"),
    ]


def _send(client: Client, row: Row, credential: tuple[str | None, dict[str, str], str]) -> None:
    auth, fields, token = credential
    sample = request_of(row, "box", "blob")
    target = sample.with_query("&".join(part for part in (token, QUERY) if part))
    headers = {**sample.headers, **HEADERS, **fields}
    client.send(sample.method, target, headers, sample.body or BODY, auth=auth)
    # Without the parameters, which many operations refuse, the other steps are reached.
    target = sample.with_query(token) if token else sample.target
    client.send(sample.method, target, {**sample.headers, **fields}, sample.body, auth=auth)
    for name, value in HEADERS.items():
        more = {**sample.headers, **fields, name: value}
        client.send(sample.method, target, more, sample.body, auth=auth)


def test_every_operation_on_blobs_with_its_account_key(logged: Logged) -> None:
    client = logged.client()
    client.put("/box?restype=container")
    client.put("/box/blob", PUT_BLOB, WORD.encode())
    for row in ROWS:
        _send(client, row, ("SharedKey", {}, ""))
    refuse_secrets(logged, len(ROWS))


def test_every_kind_of_credentials(logged: Logged) -> None:
    client = logged.client()
    client.put("/box?restype=container")
    chosen = [row for row in ROWS if row.id in ("blob_download", "blockblob_upload", "blob_delete")]
    assert len(chosen) == 3
    ways = _credentials(logged)
    for row in chosen:
        for credential in ways:
            _send(client, row, credential)
    signatures = [query.rpartition("sig=")[2] for _, _, query in ways if "sig=" in query]
    logged.server.stop()
    written = logged.path.read_bytes()
    for signature in signatures:
        assert signature.encode() not in written
    refuse_secrets(logged, len(ways))


@pytest.mark.parametrize("service", ["queue", "table", "file"])
def test_every_operation_of_the_other_services(logged: Logged, service: str) -> None:
    client = logged.client(service)
    found = [row for row in rows(service) if row.methods]
    for row in found:
        path = row.path
        for name in ("{queue}", "{share}", "{container}", "{table}"):
            path = path.replace(name, "box")
        path = path.partition("{")[0].rstrip("/(") or "/"
        query = "&".join([*(f"{name}={value}" for name, value in row.query.items()), QUERY])
        for body in (BODY, MESSAGE):
            client.send(row.methods[0], f"{path}?{query}", HEADERS, body)
            client.send(row.methods[0], path, HEADERS, body)
    refuse_secrets(logged, 2 * len(found))


def test_contents_of_messages_and_entities(logged: Logged) -> None:
    queue = logged.client("queue")
    queue.put("/box")
    assert queue.send("POST", "/box/messages", (), MESSAGE).status == 201
    got = queue.get("/box/messages")
    receipt = got.xml.findtext(".//PopReceipt") or ""
    identifier = got.xml.findtext(".//MessageId") or ""
    assert receipt
    queue.delete(f"/box/messages/{identifier}?popreceipt={receipt}")
    table = logged.client("table")
    fields = {"Content-Type": "application/json"}
    table.send("POST", "/Tables", fields, b'{"TableName": "people"}')
    assert table.send("POST", "/people", fields, BODY).status == 201
    assert table.get(f"/people()?$filter=Password%20eq%20'{WORD}'").status == 200
    logged.server.stop()
    assert receipt.encode() not in logged.path.read_bytes()
    refuse_secrets(logged, 7)


def test_parts_of_a_batch(logged: Logged) -> None:
    client = logged.client()
    client.put("/box?restype=container")
    client.put("/box/blob", PUT_BLOB, b"x")
    token = service_sas(logged.credential, "box", sp="d")
    signature = token.rpartition("sig=")[2]
    blob_batches.send(
        client,
        blob_batches.Part("DELETE", f"/box/blob?{token}", HEADERS, signed=False),
        blob_batches.Part("DELETE", f"/box/other?sig={WORD}&token={WORD}", HEADERS, signed=False),
        blob_batches.Part(
            "DELETE", "/box/other", {"Authorization": f"Bearer {WORD}"}, signed=False
        ),
    )
    logged.server.stop()
    assert signature.encode() not in logged.path.read_bytes()
    refuse_secrets(logged, 6)


@pytest.mark.parametrize("service", SERVICES)
def test_bytes_that_are_no_request(logged: Logged, service: str) -> None:
    port: int = getattr(logged.settings, f"{service}_port")
    secret = f"Authorization: SharedKey devstoreaccount1:{KEY}\r\n"
    for sent in (
        f"GET /box/blob?sig={WORD} NOTHTTP\r\n{secret}\r\n",
        f"GET /box?sig={WORD}{'x' * 20_000} HTTP/1.1\r\n{secret}\r\n",
        f"GET /box?sig={WORD} HTTP/1.1\r\nHost: h\r\n{secret}A: {'x' * 100_000}\r\n\r\n",
        f"GET http://user:pass@h/box%3Fsig={WORD} HTTP/1.1\r\nHost: h\r\n{secret}"
        "Connection: close\r\n\r\n",
        f"GET /box%253Fsig%253D{WORD}?comp=list HTTP/1.1\r\nHost: h\r\n{secret}"
        "Connection: close\r\n\r\n",
    ):
        raw(port, sent.encode())
    refuse_secrets(logged, 5)
