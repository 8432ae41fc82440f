"""Values in the forms in which versions of Azurite store them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from strongroom.importing import conversions
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import BlobPropertiesDocument, LeaseDocument
from strongroom.importing.scanning import DatabaseDamaged, records
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseState
from strongroom.values import TICKS_PER_S

NOW = conversions.time("2024-01-01T00:00:00.000Z", "now")
LEASE_ID = "AAAAAAAA-bbbb-4ccc-8ddd-eeeeeeeeeeee"


def properties(**members: Any) -> BlobPropertiesDocument:
    return msgspec.convert({"blobType": "BlockBlob", **members}, BlobPropertiesDocument)


@pytest.mark.parametrize(
    "progress", [f"0/{2**63}", f"{2**64}/1", f"{'9' * 4000}/1", f"{'9' * 5000}/1", "-1/1", "1"]
)
def test_a_copy_s_progress_that_no_record_can_have_is_refused(progress: str) -> None:
    given = {"copyId": LEASE_ID, "copyStatus": "success", "copyCompletionTime": "2024-01-01"}
    with pytest.raises(NotConvertible, match="progress"):
        conversions.copy(properties(**given, copyProgress=progress))


@pytest.mark.parametrize(
    "stored",
    [
        {"type": "Buffer", "data": list(range(16))},
        {str(index): index for index in range(16)},
        "AAECAwQFBgcICQoLDA0ODw==",
    ],
    ids=("buffer", "indexes", "base64"),
)
def test_an_md5_is_read_in_each_form(stored: object) -> None:
    found = conversions.content_properties(properties(contentMD5=stored))
    assert found.md5 == bytes(range(16))


@pytest.mark.parametrize(
    "stored",
    [{"type": "Buffer", "data": [256]}, {"1": 1}, {"data": "x"}, "?", {"data": list(range(99))}],
    ids=range(5),
)
def test_what_is_no_md5_is_refused(stored: object) -> None:
    with pytest.raises(NotConvertible):
        conversions.content_properties(properties(contentMD5=stored))


@pytest.mark.parametrize(
    ("state", "document", "expected"),
    [
        ("leased", {}, LeaseState.LEASED),
        ("leased", {"s": 30, "expires": "2024-01-01T00:00:20.000Z"}, LeaseState.LEASED),
        ("leased", {"s": 30, "expires": "2023-12-31T23:59:59.000Z"}, LeaseState.EXPIRED),
        ("breaking", {"breaks": "2024-01-01T00:00:20.000Z"}, LeaseState.BREAKING),
        ("breaking", {"breaks": "2023-12-31T00:00:20.000Z"}, LeaseState.BROKEN),
        ("broken", {}, LeaseState.BROKEN),
        ("expired", {}, LeaseState.EXPIRED),
        ("available", {}, LeaseState.AVAILABLE),
    ],
)
def test_a_lease_keeps_its_state_and_its_id(
    state: str, document: dict[str, Any], expected: LeaseState
) -> None:
    given = LeaseDocument(
        LEASE_ID, document.get("s"), document.get("expires"), document.get("breaks")
    )
    found = conversions.lease(given, state, NOW)
    assert leases.state(found, NOW) is expected
    assert found is None or found.id == LEASE_ID.lower()


def test_a_lease_ends_when_it_would_have_ended() -> None:
    given = LeaseDocument(LEASE_ID, 30, "2024-01-01T00:00:20.000Z")
    found = conversions.lease(given, "leased", NOW)
    assert found is not None
    assert found.expires == NOW + 20 * TICKS_PER_S


@pytest.mark.parametrize(
    "given",
    [
        LeaseDocument(None),
        LeaseDocument("x"),
        LeaseDocument(LEASE_ID, 30, "2025-01-01T00:00:20.000Z"),
        LeaseDocument(LEASE_ID, 1000, "2024-01-01T00:00:20.000Z"),
    ],
    ids=range(4),
)
def test_a_lease_that_cannot_be_one_is_refused(given: LeaseDocument) -> None:
    with pytest.raises(NotConvertible):
        conversions.lease(given, "leased", NOW)


class _Pieces:
    """A file that is read some bytes at a time, however many are asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self._size = size

    def read(self, size: int, /) -> bytes:
        taken, self._data = self._data[: self._size], self._data[self._size :]
        return taken


DATABASE = (
    b'{"a": [1, {"x": "}\\"]"}], "collections": [{"name": "one\\u00e9", "idIndex": [[], {}],'
    b' "data": [{"s": "\\\\"}, "t", 5, null, true , []], "more": {"d": ["{"]}},'
    b' {"name": "two", "data": [ ]}, {"name": "three", "data": [1]}], "z": -1.5e3 } \n'
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_records_are_found_wherever_the_reads_end(size: int) -> None:
    found = list(records(_Pieces(DATABASE, size), lambda name: name != "three", lambda count: None))
    assert {one.collection for one in found} == {"oneé"}
    data = [one.data for one in found]
    assert data == [b'{"s": "\\\\"}', b'"t"', b"5", b"null", b"true", b"[]"]


@pytest.mark.parametrize("end", range(0, len(DATABASE) - 2, 5))
def test_a_database_without_its_end_is_never_taken_for_a_whole_one(end: int) -> None:
    with pytest.raises(DatabaseDamaged):
        list(records(_Pieces(DATABASE[:end], 11), lambda name: True, lambda count: None))
