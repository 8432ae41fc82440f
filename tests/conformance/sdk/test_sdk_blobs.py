"""The official Python SDK works with blobs: the usual calls of its users."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    BlobBlock,
    BlobLeaseClient,
    BlobPrefix,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
)

from tests.conformance.running import Running
from tests.conformance.sdk.signed_urls import readable
from tests.conformance.sources import HOST, Source, Sources

MIB = 1024 * 1024
LARGE = bytes(range(256)) * (9 * MIB // 256) + b"end"


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    """The error code, which the SDK puts on each error that it raises."""
    return vars(raised.value)["error_code"]


def connection_string(running: Running) -> str:
    """As `UseDevelopmentStorage=true`, on the server's port."""
    return running.server.connection_string


@pytest.fixture(scope="module")
def service(server: Running) -> Iterator[BlobServiceClient]:
    """A client that uploads in blocks of 1 MiB above 2 MiB, and retries nothing."""
    with BlobServiceClient.from_connection_string(
        connection_string(server),
        max_single_put_size=2 * MIB,
        max_block_size=MIB,
        max_single_get_size=2 * MIB,
        max_chunk_get_size=MIB,
        retry_total=0,
    ) as found:
        yield found


@pytest.fixture
def box(service: BlobServiceClient, new_name: Callable[[], str]) -> Iterator[ContainerClient]:
    """A new container."""
    with service.create_container(new_name()) as found:
        yield found


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("content", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_up_and_down(box: ContainerClient, content: bytes, concurrency: int) -> None:
    blob = box.get_blob_client("dir/a b+é.txt")
    blob.upload_blob(content, max_concurrency=concurrency, validate_content=True)
    assert blob.get_blob_properties().size == len(content)
    stream = blob.download_blob(max_concurrency=concurrency, validate_content=True)
    assert stream.readall() == content
    assert b"".join(blob.download_blob().chunks()) == content
    committed, uncommitted = blob.get_block_list("all")
    assert (len(committed), len(uncommitted)) == (10 if content is LARGE else 0, 0)


def test_upload_of_unknown_length(box: ContainerClient) -> None:
    def pieces() -> Iterator[bytes]:
        for index in range(50):
            yield bytes([index]) * 100_000

    whole = b"".join(pieces())
    blob = box.upload_blob("from an iterator", pieces(), max_concurrency=4)
    assert blob.download_blob().readall() == whole
    blob = box.upload_blob("from a stream", io.BytesIO(whole), overwrite=True)
    assert blob.download_blob().readall() == whole


def test_ranges(box: ContainerClient) -> None:
    blob = box.upload_blob("b", LARGE)
    for offset, length in ((0, 1), (5, 10), (MIB - 1, 2), (3 * MIB, 4 * MIB), (9 * MIB, None)):
        end = None if length is None else offset + length
        stream = blob.download_blob(offset=offset, length=length)
        assert stream.readall() == LARGE[offset:end]
    checked = blob.download_blob(offset=0, length=2 * MIB, validate_content=True)
    assert checked.readall() == LARGE[: 2 * MIB]
    target = io.BytesIO()
    assert blob.download_blob().readinto(target) == len(LARGE)
    assert target.getvalue() == LARGE
    with pytest.raises(HttpResponseError) as past:
        blob.download_blob(offset=len(LARGE) + 1, length=5)
    assert past.value.status_code == 416


def test_properties_metadata_and_tags(box: ContainerClient) -> None:
    settings = ContentSettings("text/plain", "gzip", "de", "inline", "no-cache")
    blob = box.upload_blob(
        "b", b"x", metadata={"a": "1"}, tags={"k": "v w"}, content_settings=settings
    )
    found = blob.get_blob_properties()
    assert found.metadata == {"a": "1"}
    assert found.tag_count == 1
    assert found.content_settings.content_type == "text/plain"
    assert found.content_settings.cache_control == "no-cache"
    assert found.content_settings.content_md5 is not None
    blob.set_blob_metadata({"b": "2"})
    blob.set_http_headers(ContentSettings(content_type="text/html"))
    found = blob.get_blob_properties()
    assert found.metadata == {"b": "2"}
    assert found.content_settings.content_type == "text/html"
    assert found.content_settings.content_encoding is None
    assert (found.blob_tier, found.blob_tier_inferred) == ("Hot", True)
    assert found.creation_time <= found.last_modified


def test_conditions(box: ContainerClient) -> None:
    blob = box.get_blob_client("b")
    first = blob.upload_blob(b"first")
    with pytest.raises(ResourceExistsError) as there:
        blob.upload_blob(b"again")
    assert code(there) == "BlobAlreadyExists"
    second = blob.upload_blob(
        b"second",
        overwrite=True,
        etag=first["etag"],
        match_condition=MatchConditions.IfNotModified,
    )
    assert second["etag"] != first["etag"]
    with pytest.raises(ResourceModifiedError) as stale:
        blob.upload_blob(
            b"third",
            overwrite=True,
            etag=first["etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    assert (stale.value.status_code, code(stale)) == (412, "ConditionNotMet")
    with pytest.raises(HttpResponseError) as same:
        blob.get_blob_properties(etag=second["etag"], match_condition=MatchConditions.IfModified)
    assert (same.value.status_code, code(same)) == (304, "ConditionNotMet")
    with pytest.raises(ResourceModifiedError):
        blob.delete_blob(if_modified_since=second["last_modified"])
    with pytest.raises(ResourceModifiedError):
        blob.set_blob_metadata({}, if_tags_match_condition="\"a\" = '1'")
    assert blob.download_blob().readall() == b"second"


def test_a_download_of_a_blob_that_changes_meanwhile(box: ContainerClient) -> None:
    blob = box.upload_blob("b", LARGE)
    stream = blob.download_blob()
    blob.upload_blob(LARGE[::-1], overwrite=True)
    with pytest.raises(ResourceModifiedError):
        stream.readall()


def test_snapshots(box: ContainerClient) -> None:
    blob = box.upload_blob("b", b"first")
    taken = blob.create_snapshot(metadata={"n": "1"})
    blob.upload_blob(b"second", overwrite=True)
    old = box.get_blob_client("b", snapshot=str(taken["snapshot"]))
    assert old.download_blob().readall() == b"first"
    assert old.get_blob_properties().metadata == {"n": "1"}
    listed = [(found.name, found.snapshot) for found in box.list_blobs(include=["snapshots"])]
    assert listed == [("b", taken["snapshot"]), ("b", None)]
    with pytest.raises(ResourceExistsError) as kept:
        blob.delete_blob()
    assert code(kept) == "SnapshotsPresent"
    blob.delete_blob(delete_snapshots="include")
    assert not blob.exists()
    assert not old.exists()


def test_blocks(box: ContainerClient) -> None:
    blob = box.get_blob_client("b")
    for name in ("1", "2", "3"):
        blob.stage_block(name, name.encode() * 10, validate_content=True)
    assert not blob.exists()
    assert [found.name for found in box.list_blobs(include=["uncommittedblobs"])] == ["b"]
    blob.commit_block_list([BlobBlock("3"), BlobBlock("1")], metadata={"a": "1"})
    assert blob.download_blob().readall() == b"3" * 10 + b"1" * 10
    committed, uncommitted = blob.get_block_list("all")
    assert [(one.id, one.size) for one in committed] == [("3", 10), ("1", 10)]
    assert uncommitted == []
    with pytest.raises(HttpResponseError) as missing:
        blob.commit_block_list([BlobBlock("9")])
    assert code(missing) == "InvalidBlockList"


def test_leases(server: Running, box: ContainerClient) -> None:
    blob = box.upload_blob("b", b"x")
    lease = blob.acquire_lease(lease_duration=15)
    with pytest.raises(HttpResponseError) as locked:
        blob.upload_blob(b"y", overwrite=True)
    assert (locked.value.status_code, code(locked)) == (412, "LeaseIdMissing")
    blob.upload_blob(b"y", overwrite=True, lease=lease)
    with pytest.raises(ResourceExistsError) as held:
        BlobLeaseClient(blob).acquire(lease_duration=15)
    assert code(held) == "LeaseAlreadyPresent"
    server.advance(16)
    assert blob.get_blob_properties().lease.state == "expired"
    lease.renew()
    lease.change("11111111-2222-3333-4444-555555555555")
    assert lease.break_lease(lease_break_period=5) == 5
    lease.release()
    assert blob.get_blob_properties().lease.state == "available"


def test_copies(box: ContainerClient) -> None:
    source = box.upload_blob("source", b"content", metadata={"a": "1"})
    blob = box.get_blob_client("copy")
    begun = blob.start_copy_from_url(source.url)
    assert begun["copy_status"] == "success"
    found = blob.get_blob_properties()
    assert (found.copy.status, found.copy.progress) == ("success", "7/7")
    assert found.metadata == {"a": "1"}
    url = readable(box, "source")
    made = blob.start_copy_from_url(url, requires_sync=True, metadata={"b": "2"})
    assert made["copy_status"] == "success"
    assert blob.download_blob().readall() == b"content"
    with pytest.raises(ResourceNotFoundError) as gone:
        blob.start_copy_from_url(box.get_blob_client("none").url)
    assert code(gone) == "CannotVerifyCopySource"


def test_a_copy_that_is_aborted(new_name: Callable[[], str]) -> None:
    running = Running(copy_source_hosts=(HOST,))
    with (
        Sources() as sources,
        BlobServiceClient.from_connection_string(connection_string(running)) as service,
        service.create_container(new_name()) as box,
    ):
        blob = box.get_blob_client("b")
        begun = blob.start_copy_from_url(sources.add("/held", Source(b"x" * 1000, held=True)))
        assert blob.get_blob_properties().copy.status == "pending"
        blob.abort_copy(str(begun["copy_id"]))
        found = blob.get_blob_properties()
        assert (found.copy.status, found.size) == ("aborted", 0)
        with pytest.raises(ResourceExistsError) as none:
            blob.abort_copy(str(begun["copy_id"]))
        assert code(none) == "NoPendingCopyOperation"
    running.stop()


def test_lists(box: ContainerClient) -> None:
    names = [f"{letter}/{number}" for letter in "abc" for number in range(5)] + ["z"]
    for name in names:
        box.upload_blob(name, b"x", metadata={"n": name.replace("/", "_")}, tags={"t": "1"})
    parts = list(box.list_blobs(results_per_page=4, include=["metadata", "tags"]).by_page())
    found = [[blob.name for blob in part] for part in parts]
    assert [name for part in found for name in part] == names
    assert max(map(len, found)) <= 4
    rows = list(box.list_blobs(name_starts_with="b/", include=["metadata", "tags"]))
    assert [(row.metadata, row.tags) for row in rows] == [
        ({"n": f"b_{number}"}, {"t": "1"}) for number in range(5)
    ]
    assert list(box.list_blob_names(name_starts_with="c/")) == [f"c/{n}" for n in range(5)]
    walked = list(box.walk_blobs(results_per_page=2))
    assert [row.name for row in walked] == ["a/", "b/", "c/", "z"]
    prefix = walked[0]
    assert isinstance(prefix, BlobPrefix)
    assert [row.name for row in prefix] == names[:5]
    pages = box.list_blobs(results_per_page=5).by_page()
    first = [row.name for row in next(pages)]
    rest = box.list_blobs(results_per_page=5).by_page(vars(pages)["continuation_token"])
    assert first + [row.name for part in rest for row in part] == names


def test_what_is_missing(box: ContainerClient, service: BlobServiceClient) -> None:
    with pytest.raises(ResourceNotFoundError) as blob:
        box.get_blob_client("none").download_blob()
    assert code(blob) == "BlobNotFound"
    with pytest.raises(ResourceNotFoundError) as container:
        service.get_blob_client("no-such-container", "b").get_blob_properties()
    assert code(container) == "ContainerNotFound"
    assert not box.get_blob_client("none").exists()
    with pytest.raises(ResourceNotFoundError):
        box.delete_blob("none")
