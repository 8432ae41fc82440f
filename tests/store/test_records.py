"""Record codecs: what an earlier version of the program wrote can be read."""

from __future__ import annotations

import msgspec

from strongroom.store import records
from strongroom.store.records import BlobRecord, Within
from strongroom.values import BlobKind, ContentProperties


def test_a_blob_written_before_a_property_was_added_can_be_read() -> None:
    properties = ContentProperties("text/plain", None, None, b"0" * 16, "no-cache", None)
    blob = BlobRecord(BlobKind.BLOCK, True, 1, 2, 3, 4, Within(b"abcd"), properties)
    data = records.BLOB.encode(blob)
    fields = msgspec.msgpack.decode(data[1:])
    assert fields[7].pop() is None
    assert len(fields[7]) == 6
    assert records.BLOB.decode(data[:1] + msgspec.msgpack.encode(fields)) == blob
