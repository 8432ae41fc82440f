"""Private sources of the caller's own account: rules B-CPY-10, B-URL-14."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_target, put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, readable


def _append(client: Client, target: str, url: str) -> Answer:
    expect(client.put(target, {"x-ms-blob-type": "AppendBlob"}), 201)
    return client.put(f"{target}?comp=appendblock", {"x-ms-copy-source": url})


def _pages(client: Client, target: str, url: str) -> Answer:
    made = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    expect(client.put(target, made), 201)
    given = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-copy-source": url}
    return client.put(f"{target}?comp=page", {**given, "x-ms-source-range": "bytes=0-511"})


OPERATIONS: dict[str, Callable[[Client, str, str], Answer]] = {
    "Put Blob From URL": lambda client, target, url: client.put(
        target, {**PUT_BLOB, "x-ms-copy-source": url}
    ),
    "Copy Blob From URL": lambda client, target, url: client.put(
        target, {**SYNC, "x-ms-copy-source": url}
    ),
    "Put Block From URL": lambda client, target, url: client.put(
        block_target(target, "1"), {"x-ms-copy-source": url}
    ),
    "Append Block From URL": _append,
    "Put Page From URL": _pages,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_signature_of_a_request_does_not_read_a_private_source(
    client: Client, container: str, new_name: Callable[[], str], name: str
) -> None:
    """B-CPY-10, B-URL-14: nor does it tell whether the source exists."""
    run = OPERATIONS[name]
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source, b"x" * 512)
    for path in (source, f"/{container}/none", f"/{new_name()}/none"):
        refused = expect(run(client, target, client.url + path), 401, "CannotVerifyCopySource")
        assert refused["x-ms-copy-source-status-code"] == "401"
        assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
        assert refused.reason.startswith("Server failed to authenticate the request.")
    assert run(client, target, readable(client, client.url + source)).status in (201, 202)
    acl = f"/{container}?restype=container&comp=acl"
    expect(client.put(acl, {"x-ms-blob-public-access": "blob"}), 200)
    assert run(client, target, client.url + source).status in (201, 202)


def test_old_versions_say_that_a_private_source_is_missing(client: Client, container: str) -> None:
    """B-CPY-10: as a read without credentials is answered there."""
    put(client, f"/{container}/source", b"x")
    asked = {**PUT_BLOB, "x-ms-copy-source": f"{client.url}/{container}/source"}
    old = {**asked, "x-ms-version": "2019-10-10"}
    refused = expect(client.put(f"/{container}/b", old), 404, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-error-code"] == "ResourceNotFound"
