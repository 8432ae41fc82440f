"""The official Python SDK works with page blobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import (
    BlobServiceClient,
    BlobType,
    ContainerClient,
    PremiumPageBlobTier,
)

from tests.conformance.running import Running

KIB = 1024
TIB = KIB**4


@pytest.fixture(scope="module")
def service(server: Running) -> Iterator[BlobServiceClient]:
    """A client that retries nothing."""
    with BlobServiceClient.from_connection_string(
        server.server.connection_string, retry_total=0, max_page_size=256 * KIB
    ) as found:
        yield found


@pytest.fixture
def box(service: BlobServiceClient, container: str) -> ContainerClient:
    return service.get_container_client(container)


def test_pages_are_written_cleared_and_listed(box: ContainerClient) -> None:
    """B-PAG-01, B-PAG-06, B-PAG-09, B-PAG-13."""
    blob = box.get_blob_client("disk")
    blob.create_page_blob(TIB, sequence_number=3, premium_page_blob_tier=PremiumPageBlobTier.P30)
    blob.upload_page(b"a" * 512, offset=512, length=512, validate_content=True)
    blob.upload_page(b"b" * KIB, offset=TIB - KIB, length=KIB, if_sequence_number_eq=3)
    blob.clear_page(offset=TIB - 512, length=512)
    found = [(one.start, one.end, one.cleared) for one in blob.list_page_ranges()]
    assert found == [(512, 1023, False), (TIB - KIB, TIB - 513, False)]
    with pytest.deprecated_call():  # still what most programs call
        pages, cleared = blob.get_page_ranges()
    assert ([(one["start"], one["end"]) for one in pages], cleared) == (
        [(512, 1023), (TIB - KIB, TIB - 513)],
        [],
    )
    assert blob.download_blob(0, 2 * KIB).readall() == bytes(512) + b"a" * 512 + bytes(KIB)
    properties = blob.get_blob_properties()
    assert (properties.size, properties.page_blob_sequence_number) == (TIB, 3)
    assert properties.blob_type == BlobType.PageBlob
    with pytest.raises(HttpResponseError) as raised:
        blob.upload_page(b"c" * 512, offset=0, length=512, if_sequence_number_lt=3)
    assert vars(raised.value)["error_code"] == "SequenceNumberConditionNotMet"


def test_lists_in_pages_and_since_a_snapshot(box: ContainerClient) -> None:
    """B-PAG-14, B-PAG-15."""
    blob = box.get_blob_client("disk")
    blob.create_page_blob(TIB)
    for number in range(7):
        blob.upload_page(b"a" * 512, offset=number * KIB, length=512)
    found = [one.start for one in blob.list_page_ranges(results_per_page=2)]
    assert found == [number * KIB for number in range(7)]
    before = blob.create_snapshot()
    blob.clear_page(offset=0, length=512)
    blob.upload_page(b"b" * 512, offset=KIB, length=512)
    changed = [(one.start, one.cleared) for one in blob.list_page_ranges(previous_snapshot=before)]
    assert sorted(changed) == [(0, True), (KIB, False)]


def test_resizing_and_sequence_numbers(box: ContainerClient) -> None:
    """B-PAG-11, B-PAG-12."""
    blob = box.get_blob_client("disk")
    blob.create_page_blob(KIB)
    blob.resize_blob(2 * KIB)
    blob.set_sequence_number("update", "7")
    blob.set_sequence_number("increment")
    properties = blob.get_blob_properties()
    assert (properties.size, properties.page_blob_sequence_number) == (2 * KIB, 8)


def test_an_upload_skips_empty_pages_and_a_download_is_whole(box: ContainerClient) -> None:
    """B-PAG-01, B-PAG-06, B-PAG-13."""
    blob = box.get_blob_client("disk")
    data = b"x" * 512 + bytes(600 * KIB) + b"y" * 512
    blob.upload_blob(data, blob_type=BlobType.PAGEBLOB, length=len(data))
    assert blob.download_blob().readall() == data
    (listed,) = box.list_blobs()
    assert (listed.blob_type, listed.size) == (BlobType.PageBlob, len(data))
    with pytest.raises(ResourceExistsError) as raised:
        box.get_blob_client("disk").stage_block("AA==", b"x")
    assert vars(raised.value)["error_code"] == "InvalidBlobType"


def test_an_incremental_copy(box: ContainerClient) -> None:
    """B-INC-01."""
    source, target = box.get_blob_client("a"), box.get_blob_client("b")
    source.create_page_blob(KIB)
    source.upload_page(b"a" * 512, offset=0, length=512)
    snapshot = source.create_snapshot()["snapshot"]
    url = f"{source.url}?snapshot={snapshot}"
    target.start_copy_from_url(url, incremental_copy=True)
    while (properties := target.get_blob_properties()).copy.status == "pending":
        pass
    assert (properties.copy.status, properties.copy.incremental_copy) == ("success", True)
    made = box.get_blob_client("b", snapshot=str(properties.copy.destination_snapshot))
    assert made.download_blob().readall() == b"a" * 512 + bytes(512)
