"""Permissions of a share: security descriptors that files name by a key.

Lives here: keys, Create Permission, Get Permission, and which permission a request gives a file.
Must not live here: the syntax (semantics/file/permissions.py). Permissions are not enforced: the
account's key gives full access. Source: "Create Permission", "Get Permission"; reference file.md 2.

A key is made from the digest of the text, so equal permissions have the same key and are stored
once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from strongroom import file_errors
from strongroom.engines.base import RECORD_BYTES_MAX, Commit, Record, Ref, Step, Write
from strongroom.errors import StorageError
from strongroom.semantics.file import permissions as rules
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import PermissionRecord

DEFAULT_TEXT: Final = (
    "O:BAG:BAD:(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;AU)(A;OICI;0x1200a9;;;BU)"
)
"""The permission of a file or directory that was created without one."""


TEXT_BYTES_MAX: Final = RECORD_BYTES_MAX - 64
"""The largest text that a record can hold. It is slightly less than the rules allow."""


def key_of(text: str) -> str:
    """Return the key of a permission: two numbers of 64 bits."""
    digest = hashlib.sha256(text.encode()).digest()
    first, second = (int.from_bytes(digest[at : at + 8], "big") for at in (0, 8))
    return f"{first}*{second}"


DEFAULT_KEY: Final = key_of(DEFAULT_TEXT)


class CreatePermission(msgspec.Struct, frozen=True):
    """Input of Create Permission: the SDDL."""

    text: str


class GetPermission(msgspec.Struct, frozen=True):
    """Input of Get Permission. `form` is the form of the answer as the request names it; "" = it
    names none."""

    key: str
    form: str = ""


class StoredPermission(msgspec.Struct, frozen=True):
    """Result: a permission and its key."""

    key: str
    text: str


async def create_permission(services: Services, call: Call[CreatePermission]) -> StoredPermission:
    """Store a permission. Creating it again returns the same key.

    Raises: StorageError ShareNotFound.
    """
    text = call.input.text
    made = StoredPermission(key_of(text), text)
    ref = keys.permission(generation_of(call), made.key)
    reads = [place_ref(call), ref]
    return await services.commit(
        _Create(ref.partition, reads, call.rule.purpose, call.with_pure_authorization(), made)
    )


class _Create(Decision[StoredPermission], frozen=True):
    """The decision of Create Permission."""

    call: Call[CreatePermission]
    made: StoredPermission

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[StoredPermission]:
        """See Decision.run."""
        check_place(self.call, found[0])
        if found[1] is not None:
            return Commit(self.made)
        return Commit(self.made, (_stored(self.reads[1], self.made.text),))


def _stored(ref: Ref, text: str) -> Step:
    value = file_records.PERMISSION.encode(PermissionRecord(text))
    return Step(ref.partition, (Write(ref.key, value),))


async def get_permission(services: Services, call: Call[GetPermission]) -> StoredPermission:
    """Return the permission of a key. Raises: StorageError ShareNotFound,
    FileInvalidPermissionKey."""
    key = call.input.key
    ref = keys.permission(generation_of(call), key)
    share, found = await services.store.read([place_ref(call), ref])
    check_place(call, share)
    if key == DEFAULT_KEY:
        return StoredPermission(key, DEFAULT_TEXT)
    permission = file_records.PERMISSION.of(found)
    if permission is None:
        raise StorageError(file_errors.FILE_INVALID_PERMISSION_KEY)
    return StoredPermission(key, permission.text)


class PermissionGiven(msgspec.Struct, frozen=True):
    """The permission that a request gives: its SDDL, its key, or neither."""

    text: str | None = None
    key: str | None = None

    def ref(self, generation: int) -> tuple[Ref, ...]:
        """Return the address of the permission's record; empty = none is given, or it is the
        default."""
        key = self.key if self.text is None else key_of(self.text)
        return () if key is None or key == DEFAULT_KEY else (keys.permission(generation, key),)

    def chosen(
        self, stored: str, generation: int, found: Record | None
    ) -> tuple[str, tuple[Step, ...]]:
        """Return the key that the file gets, and the steps that store a new permission.

        Arguments:
            stored: the key that the file has now; for a new one, the default.
            found: the record of `ref`.

        Raises: FileInvalidPermissionKey.
        """
        if self.text is not None:
            refs = self.ref(generation)
            is_new = refs and found is None
            return key_of(self.text), (_stored(refs[0], self.text),) if is_new else ()
        if self.key is None or self.key == DEFAULT_KEY:
            return self.key or stored, ()
        if found is None:
            raise StorageError(file_errors.FILE_INVALID_PERMISSION_KEY)
        return self.key, ()


NO_PERMISSION: Final = PermissionGiven()


def read_header(name: str, value: str) -> str | None:
    """Return the SDDL of x-ms-file-permission; None for `inherit` and `preserve`.

    Raises: FileInvalidPermission.
    """
    if value.lower() in (rules.INHERIT, rules.PRESERVE):
        return None
    return rules.check_sddl(value, rules.HEADER_BYTES_MAX)
