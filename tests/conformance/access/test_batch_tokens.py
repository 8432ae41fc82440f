"""Bearer tokens and batches of blobs: the token that applies to each part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.storage.blob import ContainerClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from tests.auth import tokens
from tests.conformance import blob_batches as batches
from tests.conformance.answer import Answer, expect
from tests.conformance.blob_batches import Part, PartAnswer, delete
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.trusting import NAME, OWNER, Trusting

CONTRIBUTOR, READER = "Storage Blob Data Contributor", "Storage Blob Data Reader"
DONE, MISMATCH = (202, None), (403, "AuthorizationPermissionMismatch")


@pytest.fixture
def box(trusting: Trusting, new_name: Callable[[], str]) -> str:
    """A new container with the blobs `a`, `b` and `c`."""
    name, owner = new_name(), trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{name}?restype=container", owner), 201)
    for blob in "abc":
        expect(trusting.send("PUT", f"/{name}/{blob}", owner, PUT_BLOB, b"text"), 201)
    return name


def post(trusting: Trusting, user: str, *parts: Part, target: str = batches.WHOLE) -> Answer:
    """Send a batch with the token of a user."""
    client = Client(trusting.ports["blob"], Credential(NAME, DEVELOPMENT_ACCOUNT_KEY))
    data = batches.body(client, parts)
    return trusting.send("POST", target, user, {"Content-Type": batches.TYPE}, data)


def sent(trusting: Trusting, user: str, *parts: Part) -> list[tuple[int, str | None]]:
    """Status and error code of each part."""
    found: list[PartAnswer] = batches.answers(post(trusting, user, *parts))
    return [one.seen for one in found]


def bare(target: str) -> Part:
    """A part without credentials."""
    return delete(target, signed=False)


def test_a_part_without_credentials_has_the_token_of_the_whole(
    trusting: Trusting, box: str, new_name: Callable[[], str]
) -> None:
    """B-BAT-05. Each part needs a role of its own."""
    other = new_name()
    owner = trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{other}?restype=container", owner), 201)
    expect(trusting.send("PUT", f"/{other}/x", owner, PUT_BLOB, b"text"), 201)
    user = trusting.user(CONTRIBUTOR, resource=box)
    assert sent(trusting, user, bare(f"/{box}/a"), bare(f"/{other}/x")) == [DONE, MISMATCH]
    reader = trusting.user(READER)
    assert sent(trusting, reader, bare(f"/{box}/b")) == [MISMATCH]
    expect(trusting.send("HEAD", f"/{box}/a", owner), 404, "BlobNotFound")
    expect(trusting.send("HEAD", f"/{box}/b", owner), 200)
    expect(trusting.send("HEAD", f"/{other}/x", owner), 200)


def test_credentials_of_a_part_go_before_the_token_of_the_whole(
    trusting: Trusting, box: str
) -> None:
    """B-BAT-05."""
    reader, owner = trusting.user(READER), trusting.user(OWNER)
    own = {"Authorization": f"Bearer {tokens.token(oid=owner)}"}
    weak = {"Authorization": f"Bearer {tokens.token(oid=reader)}"}
    target = f"/{box}/a"
    assert sent(trusting, owner, delete(target, weak, signed=False)) == [MISMATCH]
    assert sent(trusting, reader, delete(target, own, signed=False)) == [DONE]
    assert sent(trusting, reader, delete(f"/{box}/b")) == [DONE]


def test_a_batch_needs_some_role(trusting: Trusting, box: str) -> None:
    """B-BAT-05."""
    nobody = trusting.user()
    for target in (batches.WHOLE, batches.of(box)):
        refused = post(trusting, nobody, bare(f"/{box}/a"), target=target)
        expect(refused, 403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize("resource", ["", "box"])
def test_the_sdk_deletes_with_a_token(trusting: Trusting, box: str, resource: str) -> None:
    """B-BAT-01, B-BAT-05."""
    user = trusting.user(CONTRIBUTOR, resource=resource and box)
    with ContainerClient(trusting.url(), box, **trusting.sdk(user)) as container:
        tiers = container.set_standard_blob_tier_blobs("Cool", "a", "b")
        assert [one.status_code for one in tiers] == [200, 200]
        assert [one.status_code for one in container.delete_blobs("a", "b")] == [202, 202]
        assert list(container.list_blob_names()) == ["c"]
