"""Permissions of a share: security descriptors that files name by a key.

Lives here: keys, Create Permission, Get Permission, and which permission a request gives a file.
Must not live here: the syntax (semantics/file/permissions.py). Permissions are not enforced: the
account's key gives full access. Source: "Create Permission", "Get Permission"; reference file.md 2.

A key is made from the digest of the text, so equal permissions have the same key and are stored
once.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from strongroom.engines.base import RECORD_BYTES_MAX, Commit, Ref, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import permissions as rules
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import PermissionRecord

DEFAULT_TEXT: Final = (
    "O:BAG:BAD:(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;AU)(A;OICI;0x1200a9;;;BU)"
)
"""The permission of a file or directory that was created without one."""


TEXT_BYTES_MAX: Final = RECORD_BYTES_MAX - 64
"""The largest text that a record can hold. It is slightly less than the rules allow."""


def key_of(text: str) -> str:
    """Two numbers of 64 bits."""
    digest = hashlib.sha256(text.encode()).digest()
    first, second = (int.from_bytes(digest[at : at + 8], "big") for at in (0, 8))
    return f"{first}*{second}"


DEFAULT_KEY: Final = key_of(DEFAULT_TEXT)


class CreatePermission(msgspec.Struct, frozen=True):
    """`text` is SDDL."""

    text: str


class GetPermission(msgspec.Struct, frozen=True):
    """`form` is the form of the answer as the request names it; "" = it names none."""

    key: str
    form: str = ""


class StoredPermission(msgspec.Struct, frozen=True):
    key: str
    text: str


async def create_permission(services: Services, call: Call[CreatePermission]) -> StoredPermission:
    """Creating it again returns the same key."""
    text = call.input.text
    made = StoredPermission(key_of(text), text)
    ref, reads = keys.permission(generation_of(call), made.key), Reads()
    return await services.commit(
        _Create(
            ref.partition,
            reads.refs,
            call.rule.purpose,
            call.with_pure_authorization(),
            share=reads.add(place_ref(call), records.SHARE),
            permission=reads.add(ref, file_records.PERMISSION),
            made=made,
        )
    )


class _Create(Decision[StoredPermission], frozen=True):
    call: Call[CreatePermission]
    share: ReadOne[ShareRecord]
    permission: ReadOne[PermissionRecord]
    made: StoredPermission

    def decide(self, found: Found, stamp: int) -> Commit[StoredPermission]:
        check_place(self.call, found.record(self.share))
        if found.record(self.permission) is not None:
            return Commit(self.made)
        return Commit(self.made, (_stored(self.permission.ref, self.made.text),))


def _stored(ref: Ref, text: str) -> Step:
    value = file_records.PERMISSION.encode(PermissionRecord(text))
    return Step(ref.partition, (Write(ref.key, value),))


async def get_permission(services: Services, call: Call[GetPermission]) -> StoredPermission:
    key = call.input.key
    ref = keys.permission(generation_of(call), key)
    share, stored = await services.store.read([place_ref(call), ref])
    check_place(call, share)
    if key == DEFAULT_KEY:
        return StoredPermission(key, DEFAULT_TEXT)
    permission = file_records.PERMISSION.of(stored)
    if permission is None:
        raise StorageError(file_errors.FILE_INVALID_PERMISSION_KEY)
    return StoredPermission(key, permission.text)


class PermissionGiven(msgspec.Struct, frozen=True):
    """The permission that a request gives: its SDDL, its key, or neither."""

    text: str | None = None
    key: str | None = None

    def read(self, reads: Reads, generation: int) -> PermissionRead:
        key = self.key if self.text is None else key_of(self.text)
        if key is None or key == DEFAULT_KEY:
            return PermissionRead(self, None)
        return PermissionRead(
            self, reads.add(keys.permission(generation, key), file_records.PERMISSION)
        )

    def read_for(self, call: Call[Any], reads: Reads) -> PermissionRead:
        """As `read`, for a request. If its share is missing, the request is refused later."""
        return self.read(reads, 0 if call.place is None else call.place.generation)


NO_PERMISSION: Final = PermissionGiven()


class PermissionRead(msgspec.Struct, frozen=True):
    """The permission that a request gives, and its record; None = none is given, or it is the
    default."""

    given: PermissionGiven
    record: ReadOne[PermissionRecord] | None

    def chosen(self, stored: str, found: Found) -> tuple[str, tuple[Step, ...]]:
        """Return the key that the file gets, and the steps that store a new permission. `stored` is
        the key that the file has now; for a new one, the default."""
        given, read = self.given, self.record
        is_stored = read is not None and found.record(read) is not None
        if given.text is not None:
            if read is None or is_stored:
                return key_of(given.text), ()
            return key_of(given.text), (_stored(read.ref, given.text),)
        if given.key is None or given.key == DEFAULT_KEY:
            return given.key or stored, ()
        if not is_stored:
            raise StorageError(file_errors.FILE_INVALID_PERMISSION_KEY)
        return given.key, ()


def read_header(name: str, value: str) -> str | None:
    """Return the SDDL of x-ms-file-permission; None for `inherit` and `preserve`."""
    if value.lower() in (rules.INHERIT, rules.PRESERVE):
        return None
    return rules.check_sddl(value, rules.HEADER_BYTES_MAX)
