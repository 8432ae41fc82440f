"""The check of a blob's upload: the counts of all gateways, and the staged blocks, agree.

Lives here: the check of one upload. Must not live here: the rest of a blob (integrity.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from strongroom import limits
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import Upload
from strongroom.store.core import gateway_keys


class UploadCheck:
    """The upload of one blob: take all records, then call `problems`."""

    def __init__(self) -> None:
        self._uploads: dict[int, Upload] = {}
        self._staged: dict[int, int] = {}

    @property
    def first(self) -> Upload | None:
        """The record that is there during the whole upload."""
        return self._uploads.get(0)

    @property
    def has_waste(self) -> bool:
        """Whether blocks are staged that belong to no upload in progress."""
        return bool(self._staged.keys() - self._numbers())

    def take(self, name: bytes, value: bytes) -> bool:
        """Return False for a record that is not one of an upload."""
        gateway = gateway_keys.upload_gateway(name)
        if gateway is None:
            return False
        self._uploads[gateway] = blob_records.UPLOAD.decode(value)
        return True

    def take_staged(self, number: int) -> None:
        """Count a block that was staged in this upload."""
        self._staged[number] = self._staged.get(number, 0) + 1

    def problems(self) -> Iterator[str]:
        first, uploads = self.first, self._uploads.values()
        named = set() if first is None else {0, *first.others}
        if named != self._uploads.keys() or len(self._numbers()) > 1:
            yield "its upload does not name the records of the gateways"
        counted = sum(one.count for one in uploads)
        staged = sum(self._staged.get(number, 0) for number in self._numbers())
        if staged != counted:
            yield f"{staged} staged blocks, but {counted} are counted"
        if first is not None and first.others:
            shares = sum(one.share for one in uploads)
            exceeds = any(one.count > one.share for one in uploads)
            if exceeds or shares > limits.UNCOMMITTED_BLOCKS_MAX:
                yield "the gateways may stage more blocks than the limit"

    def _numbers(self) -> set[int]:
        """The numbers of the uploads in progress; there must be one at most."""
        return {one.number for one in self._uploads.values()}
