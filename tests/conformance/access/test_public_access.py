"""Callers without credentials: rules B-PUB-*."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.pages import PAGE, create, write
from tests.conformance.rows import SERVED, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

BLOB_READS = (
    "blob_download",
    "blob_get_properties",
    "blob_get_metadata",
    "blockblob_get_block_list",
)
# These operations need a page blob.
PAGE_READS = ("pageblob_get_page_ranges", "pageblob_get_page_ranges_diff")
CONTAINER_READS = (
    "container_get_properties",
    "container_get_metadata",
    "container_list_blob_flat_segment",
    "container_list_blob_hierarchy_segment",
)
NONE: dict[str, str | None] = {"x-ms-version": None}
Public = Callable[[str], str]


@pytest.fixture
def public(client: Client, new_name: Callable[[], str]) -> Public:
    """Makes a container of this public access with a blob `b`."""

    def make(access: str) -> str:
        name = new_name()
        headers = {"x-ms-blob-public-access": access} if access else {}
        expect(client.put(f"/{name}?restype=container", headers), 201)
        expect(client.put(f"/{name}/b", PUT_BLOB, b"text"), 201)
        return name

    return make


def send(client: Client, row: Row, container: str) -> Answer:
    """The row's request without credentials."""
    sample = request_of(row, container)
    return client.send(sample.method, sample.target, sample.headers, sample.body, auth=None)


@pytest.mark.parametrize("version", [None, "2009-09-19", "2019-07-07"])
def test_old_versions_hide_everything(client: Client, public: Public, version: str | None) -> None:
    """B-PUB-01: there or not."""
    private, open_ = public(""), public("blob")
    headers = {"x-ms-version": version}
    for target in (
        f"/{private}/b",
        f"/{private}/absent",
        "/absentabsent/b",
        f"/{private}?restype=container&comp=list",
        f"/{open_}?restype=container&comp=list",
    ):
        answer = client.get(target, headers, auth=None)
        assert (answer.status, answer.error["Code"]) == (404, "ResourceNotFound")
        assert answer.get("WWW-Authenticate") is None


@pytest.mark.parametrize("version", ["2019-12-12", "2025-11-05"])
def test_new_versions_ask_for_credentials(client: Client, public: Public, version: str) -> None:
    """B-PUB-02: there or not."""
    private, open_ = public(""), public("blob")
    headers = {"x-ms-version": version}
    for target in (
        f"/{private}/b",
        f"/{private}/absent",
        "/absentabsent/b",
        f"/{private}?restype=container&comp=list",
        f"/{open_}?restype=container&comp=list",
    ):
        answer = client.get(target, headers, auth=None)
        expect(answer, 401, "NoAuthenticationInformation")
        assert answer["WWW-Authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("version", [None, "2009-09-19", "2025-11-05"])
@pytest.mark.parametrize("access", ["blob", "container"])
def test_what_public_access_serves(
    client: Client, public: Public, access: str, version: str | None
) -> None:
    """B-PUB-03 B-PUB-04."""
    container = public(access)
    served = BLOB_READS + (CONTAINER_READS if access == "container" else ())
    for row in SERVED:
        if row.id not in BLOB_READS + CONTAINER_READS:
            continue
        sample = request_of(row, container)
        answer = client.send(sample.method, sample.target, {"x-ms-version": version}, auth=None)
        assert answer.status == (200 if row.id in served else refused(version)), row.id


@pytest.mark.parametrize("access", ["blob", "container"])
def test_the_page_ranges_of_an_open_blob(client: Client, public: Public, access: str) -> None:
    """B-PUB-03 B-PUB-04."""
    target = f"/{public(access)}/p"
    create(client, target, PAGE)
    taken = expect(client.put(f"{target}?comp=snapshot"), 201)["x-ms-snapshot"]
    write(client, target, 0, b"1" * PAGE)
    for since in ("", f"&prevsnapshot={taken}"):
        listed = client.send("GET", f"{target}?comp=pagelist{since}", {}, auth=None)
        assert expect(listed, 200).xml.findtext("PageRange/End") == "511"


def refused(version: str | None) -> int:
    """The status of a refusal."""
    return 401 if version is not None and version >= "2019-12-12" else 404


def test_snapshots_and_block_lists_of_a_public_blob(client: Client, public: Public) -> None:
    """B-PUB-03: snapshots included; of the block lists the committed one only."""
    container = public("blob")
    blob = f"/{container}/b"
    expect(client.put(f"{blob}?comp=block&blockid=QQ==", (), b"A"), 201)
    body = b"<BlockList><Latest>QQ==</Latest></BlockList>"
    expect(client.put(f"{blob}?comp=blocklist", (), body), 201)
    expect(client.put(f"{blob}?comp=block&blockid=Qg==", (), b"B"), 201)
    time = expect(client.put(f"{blob}?comp=snapshot"), 201)["x-ms-snapshot"]
    anonymous = client.anonymous
    for query in ("", "&comp=metadata", "&comp=blocklist"):
        expect(anonymous.get(f"{blob}?snapshot={time}{query}"), 200)
    found = expect(anonymous.get(f"{blob}?comp=blocklist"), 200)
    assert texts(found.xml, ".//Block/Name") == ["QQ=="]
    for kind in ("all", "uncommitted"):
        listed = anonymous.get(f"{blob}?comp=blocklist&blocklisttype={kind}")
        assert b"Qg==" not in listed.body
    anonymous.close()


@pytest.mark.parametrize(
    "row",
    [r for r in SERVED if r.id not in BLOB_READS + PAGE_READS + CONTAINER_READS],
    ids=lambda row: row.id,
)
def test_what_is_never_served(client: Client, public: Public, row: Row) -> None:
    """B-PUB-05: writes, leases, ACLs and service operations."""
    container = public("container")
    before = expect(client.head(f"/{container}/b"), 200).etag
    expect(send(client, row, container), 401, "NoAuthenticationInformation")
    assert expect(client.head(f"/{container}/b"), 200).etag == before


def test_wrong_credentials_are_not_none(client: Client, public: Public) -> None:
    """B-PUB-05: also on a public blob."""
    blob = f"/{public('container')}/b"
    expect(client.get(blob, auth=None), 200)
    stranger = Client(client.port, Credential(client.account, "d3Jvbmc="))
    expect(stranger.get(blob), 403, "AuthenticationFailed")
    token = "sv=2025-11-05&sr=b&sp=r&se=2099-01-01&sig=AAAA"
    expect(client.get(f"{blob}?{token}", auth=None), 403, "AuthenticationFailed")
    stranger.close()


def test_an_unknown_account(server: Running, client: Client) -> None:
    """B-PUB-06."""
    stranger = Client(server.port, Credential("nobodyknows", client.credential.key))
    for auth in ("SharedKey", None):
        for target in ("/con/b", "/?comp=list", "/con?restype=container"):
            answer = expect(stranger.get(target, auth=auth), 403, "AuthenticationFailed")
            assert "nobodyknows" in answer.error["AuthenticationErrorDetail"]
    stranger.close()
