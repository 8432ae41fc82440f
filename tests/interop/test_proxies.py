"""nginx and Caddy with the manual's configurations change nothing that a client would notice."""

from __future__ import annotations

import gzip
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import (
    AccountSasPermissions,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    ResourceTypes,
    generate_account_sas,
)
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from tests.interop.proxies import Proxied, proxied

PROXIES = ("nginx", "caddy")
MIB = 1024 * 1024
_TIMEOUT_S = 60


@pytest.fixture(scope="module", params=PROXIES)
def behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    """Provide a server behind each proxy."""
    with proxied(request.param, tmp_path_factory.mktemp(request.param)) as one:
        yield one


def _verified(behind: Proxied) -> dict[str, Any]:
    return {"connection_verify": str(behind.certificate), "retry_total": 0}


def _container(behind: Proxied, name: str, **options: Any) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(
        behind.connection_string, **_verified(behind), **options
    )
    return service.create_container(name)


def _token() -> str:
    """Return a shared access signature that only HTTPS may use."""
    return generate_account_sas(
        "devstoreaccount1",
        DEVELOPMENT_ACCOUNT_KEY,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, list=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
        protocol="https",
    )


@pytest.mark.parametrize("name", ["a b", "a//b/", "ä/ö%2F+", "a%20b", "x'y(z);k=1,2"])
def test_names_of_blobs_stay_as_they_are(behind: Proxied, name: str) -> None:
    container = _container(behind, f"names{abs(hash(name))}")
    container.upload_blob(name, b"here")
    assert [blob.name for blob in container.list_blobs()] == [name]
    assert container.download_blob(name).readall() == b"here"


def test_names_of_metadata_may_have_underscores(behind: Proxied) -> None:
    blob = _container(behind, "metadata").upload_blob("b", b"", metadata={"my_key": "value"})
    metadata = blob.get_blob_properties().metadata
    # Caddy writes names of headers with a capital, and these name the metadata.
    assert {name.lower(): value for name, value in metadata.items()} == {"my_key": "value"}


def test_bodies_of_any_length_arrive(behind: Proxied) -> None:
    container = _container(behind, "bodies", max_single_put_size=64 * MIB)
    sent = os.urandom(24 * MIB)
    container.upload_blob("at once", sent)
    assert container.download_blob("at once").readall() == sent


def test_a_compressed_blob_is_not_unpacked_on_the_way(behind: Proxied) -> None:
    container = _container(behind, "compressed")
    packed = gzip.compress(b"text " * 1000)
    blob = container.upload_blob("b", packed)
    blob.set_http_headers(ContentSettings(content_encoding="gzip"))
    at = urlsplit(behind.url)
    context = ssl.create_default_context(cafile=behind.certificate)
    connection = HTTPSConnection(at.netloc, timeout=_TIMEOUT_S, context=context)
    path = f"/blob/devstoreaccount1/compressed/b?{_token()}"
    connection.putrequest("GET", path, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.read() == packed
    connection.close()


def _answer(behind: Proxied, path: str, method: str = "GET", **headers: str) -> Any:
    context = ssl.create_default_context(cafile=behind.certificate)
    request = Request(behind.url + path, method=method, headers=headers)
    return urlopen(request, timeout=_TIMEOUT_S, context=context)


def test_a_token_for_https_only_and_conditions_hold(behind: Proxied) -> None:
    url = _container(behind, "tokens").upload_blob("b", b"1").url
    blob = BlobClient.from_blob_url(url, _token(), **_verified(behind))
    etag = blob.get_blob_properties().etag
    unless: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    blob.upload_blob(b"2", overwrite=True, **unless)
    with pytest.raises(HttpResponseError) as refused:
        blob.upload_blob(b"3", overwrite=True, **unless)
    assert refused.value.status_code == 412


def test_a_copy_knows_the_server_by_the_name_of_the_proxy(behind: Proxied) -> None:
    container = _container(behind, "copies")
    source = container.upload_blob("source", b"bytes")
    target = container.get_blob_client("target")
    assert target.start_copy_from_url(source.url)["copy_status"] == "success"
    assert target.download_blob().readall() == b"bytes"


def test_a_request_that_waits_is_answered_by_the_change(behind: Proxied) -> None:
    blob = _container(behind, "waits").upload_blob("b", b"old")
    etag = blob.get_blob_properties().etag
    got: list[bytes] = []

    def wait() -> None:
        unless: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfModified}
        got.append(blob.download_blob(headers={"x-strongroom-wait": "60"}, **unless).readall())

    waiting = threading.Thread(target=wait)
    waiting.start()
    blob.upload_blob(b"new", overwrite=True)
    waiting.join(_TIMEOUT_S)
    assert got == [b"new"]


def test_a_client_may_ask_before_it_sends_its_body(behind: Proxied) -> None:
    _container(behind, "asking")
    at = urlsplit(behind.url)
    assert at.hostname and at.port
    head = (
        f"PUT /blob/devstoreaccount1/asking/b?{_token()} HTTP/1.1\r\nHost: {at.netloc}\r\n"
        "x-ms-version: 2025-11-05\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 4\r\n"
        "Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    context = ssl.create_default_context(cafile=behind.certificate)
    with (
        socket.create_connection((at.hostname, at.port), _TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=at.hostname) as stream,
        stream.makefile("rb") as answers,
    ):
        stream.sendall(head.encode())
        assert answers.readline().split()[1] == b"100"
        assert answers.readline() == b"\r\n"
        stream.sendall(b"body")
        # Caddy passes on the 100 of the server beside its own.
        last = [line for line in answers if line.startswith(b"HTTP/")][-1]
        assert last.split()[1] == b"201"


def test_the_name_of_the_host_arrives(behind: Proxied) -> None:
    _container(behind, "hosts")
    path = f"/hosts?restype=container&comp=list&{_token()}"
    with _answer(behind, path, Host="devstoreaccount1.blob.localhost") as answer:
        assert answer.status == 200


def test_of_the_own_endpoints_only_health_can_be_reached(behind: Proxied) -> None:
    with _answer(behind, "/.strongroom/health") as answer:
        assert answer.status == 200
    for path, method in (("metrics", "GET"), ("clock", "POST"), ("reset", "POST")):
        with pytest.raises(HTTPError, match="404"):
            _answer(behind, f"/.strongroom/{path}", method)


def test_the_other_services_work_too(behind: Proxied) -> None:
    given, options = behind.connection_string, _verified(behind)
    queue = QueueServiceClient.from_connection_string(given, **options).create_queue("letters")
    queue.send_message("hello")
    assert [message.content for message in queue.receive_messages()] == ["hello"]
    table = TableServiceClient.from_connection_string(given, **options).create_table("People")
    table.create_entity({"PartitionKey": "a", "RowKey": "it's a+b", "name": "Ann"})
    assert table.get_entity("a", "it's a+b")["name"] == "Ann"
    share = ShareServiceClient.from_connection_string(given, **options).create_share("papers")
    file = share.get_file_client("page")
    file.upload_file(b"text")
    assert file.download_file().readall() == b"text"


@pytest.mark.parametrize(
    ("program", "line", "checked"),
    [
        ("nginx", "underscores_in_headers", test_names_of_metadata_may_have_underscores),
        ("nginx", "client_max_body_size", test_bodies_of_any_length_arrive),
        ("nginx", "proxy_set_header Host", test_the_name_of_the_host_arrives),
        ("caddy", "compression off", test_a_compressed_blob_is_not_unpacked_on_the_way),
    ],
)
def test_without_a_line_it_does_not_work(
    program: str, line: str, checked: Callable[[Proxied], None], tmp_path: Path
) -> None:
    with (
        proxied(program, tmp_path, line) as behind,
        pytest.raises((AssertionError, HTTPError, HttpResponseError, KeyError)),
    ):
        checked(behind)
