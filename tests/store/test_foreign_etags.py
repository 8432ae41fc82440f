"""ETags of another server in records: shown until the first change, unknown to old records."""

from __future__ import annotations

import msgspec
import pytest

from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.in_record import InRecord
from strongroom.store.core import records
from strongroom.store.core.records import ContainerRecord
from strongroom.values import BlobKind, ContentProperties, ForeignEtag

TEXT = '"0x1D02CDB34EF47D0"'


def blob(**changes: object) -> BlobRecord:
    record = BlobRecord(
        BlobKind.BLOCK, True, 1000, 900, 800, 1, InRecord(b"x", 5), ContentProperties()
    )
    return msgspec.structs.replace(record, **changes)


def old_form(data: bytes, fields: int) -> bytes:
    """Return a record as it was stored when it had so many fields."""
    return data[:1] + msgspec.msgpack.encode(msgspec.msgpack.decode(data[1:])[:fields])


def test_a_record_without_the_field_decodes_as_before() -> None:
    new = blob_records.BLOB.encode(blob())
    count = len(msgspec.msgpack.decode(new[1:]))
    assert BlobRecord.__struct_fields__[-1] == "foreign"
    assert blob_records.BLOB.decode(old_form(new, count - 1)) == blob()
    container = ContainerRecord(5, 6, 7)
    encoded = records.CONTAINER.encode(container)
    assert ContainerRecord.__struct_fields__[-1] == "foreign"
    old = old_form(encoded, len(ContainerRecord.__struct_fields__) - 1)
    assert records.CONTAINER.decode(old) == container
    assert records.CONTAINER.decode(old).shown_etag == 6


def test_a_foreign_etag_is_shown_until_the_record_gets_another_stamp() -> None:
    imported = blob(foreign=ForeignEtag(1000, TEXT))
    assert blob_records.BLOB.decode(blob_records.BLOB.encode(imported)) == imported
    assert imported.shown_etag == TEXT
    assert msgspec.structs.replace(imported, metadata=(("a", "b"),)).shown_etag == TEXT
    assert msgspec.structs.replace(imported, etag=1001).shown_etag == 1001
    container = ContainerRecord(5, 6, 7, foreign=ForeignEtag(6, TEXT))
    assert container.shown_etag == TEXT
    assert msgspec.structs.replace(container, etag=8).shown_etag == 8


def test_a_version_is_named_by_the_stamp_and_not_by_a_foreign_etag() -> None:
    imported = blob(foreign=ForeignEtag(1000, TEXT))
    version = blob_records.as_version(imported)
    assert version.version == 1000
    assert version.shown_etag == TEXT


@pytest.mark.parametrize("fields", range(8, len(BlobRecord.__struct_fields__)))
def test_a_record_of_any_earlier_length_still_decodes(fields: int) -> None:
    data = blob_records.BLOB.encode(blob())
    assert blob_records.BLOB.decode(old_form(data, fields)).etag == 1000
