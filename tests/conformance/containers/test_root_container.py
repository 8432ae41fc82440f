"""The root container: rules B-ADR-04 and B-ADR-17."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect
from tests.conformance.blobs import put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import copy, source_url
from tests.conformance.listing import names, page
from tests.conformance.sas import service_sas

ROOT = "/$root?restype=container"


@pytest.fixture
def rooted(account: Client) -> Client:
    """A client of an account that has a root container."""
    expect(account.put(ROOT), 201)
    return account


def test_every_operation_on_a_blob_takes_the_short_url(rooted: Client) -> None:
    """B-ADR-17."""
    put(rooted, "/b", b"content", {"x-ms-meta-k": "v"})
    taken = snapshot(rooted, "/b")
    assert expect(rooted.get(f"/b?snapshot={taken}"), 200).body == b"content"
    expect(rooted.put("/b?comp=metadata", {"x-ms-meta-k": "w"}), 200)
    expect(rooted.put("/b?comp=tier", {"x-ms-access-tier": "Cool"}), 200)
    assert rooted.head("/$root/b")["x-ms-access-tier"] == "Cool"
    stage(rooted, "/staged", "1", b"x")
    expect(copy(rooted, source_url(rooted, "/b"), "/copied"), 202)
    assert names(page(rooted, "$root")) == ["b", "copied"]
    expect(rooted.delete("/b", {"x-ms-delete-snapshots": "include"}), 202)
    assert names(page(rooted, "%24root")) == ["copied"]


def test_a_name_in_the_root_container_has_no_slash(rooted: Client) -> None:
    """B-ADR-17."""
    expect(rooted.put("/$root/a/b", PUT_BLOB, b"x"), 400, "InvalidResourceName")
    expect(rooted.put("/$root/a%2Fb", PUT_BLOB, b"x"), 400, "InvalidResourceName")
    assert names(page(rooted, "$root")) == []


def test_a_token_for_the_root_container(rooted: Client) -> None:
    """B-ADR-17: signed for the name `$root`, in both forms of the URL."""
    put(rooted, "/b", b"content")
    put(rooted, "/other", b"content")
    anonymous = rooted.anonymous
    for token in (
        service_sas(rooted.credential, "$root", "b", sp="r"),
        service_sas(rooted.credential, "$root", sp="r"),
    ):
        for target in ("/b", "/$root/b"):
            assert expect(anonymous.get(f"{target}?{token}"), 200).body == b"content"
    token = service_sas(rooted.credential, "$root", "b", sp="r")
    expect(anonymous.get(f"/other?{token}"), 403, "AuthenticationFailed")


def test_public_access_to_the_root_container(rooted: Client) -> None:
    """B-ADR-17."""
    put(rooted, "/b", b"content")
    anonymous = rooted.anonymous
    expect(anonymous.get("/b"), 401, "NoAuthenticationInformation")
    public = {"x-ms-blob-public-access": "blob"}
    expect(rooted.put(f"{ROOT}&comp=acl", public), 200)
    assert expect(anonymous.get("/b"), 200).body == b"content"


def test_the_root_container_is_one_like_others(rooted: Client) -> None:
    """B-ADR-17."""
    expect(rooted.put(ROOT), 409, "ContainerAlreadyExists")
    expect(rooted.get(ROOT), 200)
    listed = expect(rooted.get("/?comp=list"), 200).xml
    assert [one.text for one in listed.findall(".//Name")] == ["$root"]
    put(rooted, "/b")
    expect(rooted.delete(ROOT), 202)
    expect(rooted.get("/b"), 404, "ContainerNotFound")
