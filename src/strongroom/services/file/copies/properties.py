"""The SMB properties of a copy: the source's, given ones, or those of a new file.

Lives here: the properties that the headers of Copy File ask for. Must not live here: the rules of
single values (semantics/file/attributes.py). Source: "Copy File", request headers; reference
file.md 5.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.errors.core import invalid_header
from strongroom.semantics.file import attributes as rules
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.file.copies.reading import FileSource
from strongroom.services.file.names.permissions import PermissionGiven
from strongroom.services.file.names.smb_properties import NOTHING_GIVEN, SmbProperties
from strongroom.values import iso7

SOURCE: Final = "source"
HEADERS: Final = {
    "attributes": "x-ms-file-attributes",
    "creation": "x-ms-file-creation-time",
    "last_write": "x-ms-file-last-write-time",
    "change": "x-ms-file-change-time",
}
_TIMES: Final = ("creation", "last_write", "change")
PERMISSION_MODE: Final = "x-ms-file-permission-copy-mode"


class CopiedProperties(msgspec.Struct, frozen=True):
    """The SMB properties that a request gives the copy.

    Attributes:
        given: as for a new file; each value but the permission may be `source` instead.
        copies_permission: whether the permission is the source's.
        archives: whether the copy has the attribute Archive, whatever else is given; None = that
            follows from the attributes.
    """

    given: SmbProperties = NOTHING_GIVEN
    copies_permission: bool = False
    archives: bool | None = None

    def check(self, source: FileSource | None) -> None:
        """Refuse `source` for a property that the source does not have, since it is no file of this
        server. InvalidHeaderValue also for values that no file can have."""
        if source is None:
            for field, name in HEADERS.items():
                if _is_source(getattr(self.given, field)):
                    raise invalid_header(name, SOURCE, "The source has no such property.")
            if self.copies_permission:
                raise invalid_header(PERMISSION_MODE, SOURCE, "The source has no permission.")
        self.bits(source)

    def of_new(self, source: FileSource | None) -> SmbProperties:
        """The properties of the new file, with the source's values in place of `source`. Attributes
        are left out; see `bits`."""
        given, values = self.given, dict[str, str | None](attributes=None)
        if source is not None:
            record = source.record
            for field, ticks in zip(
                _TIMES, (record.creation, record.write, record.change), strict=True
            ):
                if _is_source(getattr(given, field)):
                    values[field] = iso7(ticks)
        copied = msgspec.structs.replace(given, **values)
        if self.copies_permission and source is not None:
            permission = PermissionGiven(text=source.permission)
            copied = msgspec.structs.replace(copied, permission=permission)
        return copied

    def bits(self, source: FileSource | None) -> int:
        """The attributes of the copy; the default is Archive."""
        given, bits = self.given.attributes, Attribute.ARCHIVE
        if source is not None and _is_source(given):
            bits = Attribute(source.record.attributes)
        elif given is not None:
            bits = rules.parse(given, is_directory=False)
        if self.archives is None:
            return int(bits)
        return int(bits | Attribute.ARCHIVE if self.archives else bits & ~Attribute.ARCHIVE)


NOTHING_COPIED: Final = CopiedProperties()


def _is_source(value: str | None) -> bool:
    return value is not None and value.lower() == SOURCE
