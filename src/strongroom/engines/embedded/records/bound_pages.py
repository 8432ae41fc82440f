"""A VFS below the checksum VFS that binds each page of the database to its number.

Lives here: the mask, the VFS, and the names of files whose pages are not bound. Must not live here:
the checksum (checksummed_pages.py). Source: "The OS Interface or VFS" and "The Checksum VFS Shim"
of SQLite's documentation.

The checksum VFS computes a checksum of a page's bytes alone. A page that reads as zeros would pass,
since the checksum of zeros is 0. So would a page that was written to another page's place. This VFS
XORs a mask of the page's number into the stored checksum, and removes it when the page is read. No
mask is 0, and no two masks are equal: the factor is odd, so the product is a bijection modulo 2^64.

The log is left as it is: the checksum of each frame covers the page's number. A checkpoint writes
the pages through both VFSs. Pages are read by whole pages only, and the database is not mapped into
memory, because the checksum VFS forbids that. SQLite also reads the first 100 bytes by themselves;
they hold no checksum.
"""

from __future__ import annotations

import os
import struct
from typing import Final
from urllib.parse import quote

import apsw

PAGE_BYTES: Final = 8192  # a record of 2 KB still lies inside its leaf
BINDING_VFS: Final = "strongroom-bound-pages"

_SUM_AT: Final = PAGE_BYTES - 8
_FACTOR: Final = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd
_SUM_MASK: Final = (1 << 64) - 1
_ZEROS: Final = bytes(PAGE_BYTES)
_NEVER_RIGHT: Final = b"\xff" * 8  # the checksum of zeros is 0
_UNBOUND: Final = "strongroom-pages"
_SUM: Final = struct.Struct("<Q")
_unpack_sum, _pack_sum = _SUM.unpack_from, _SUM.pack
_read: Final = apsw.VFSFile.xRead
_write: Final = apsw.VFSFile.xWrite


def masked(page: bytes, offset: int) -> bytes:
    """Return the page with the mask of its number XORed into its checksum. The reverse is the same.

    Arguments:
        page: the page, PAGE_BYTES long.
        offset: where the page lies in the database's file, in bytes.
    """
    (checksum,) = _unpack_sum(page, _SUM_AT)
    mask = (offset // PAGE_BYTES + 1) * _FACTOR & _SUM_MASK
    return page[:_SUM_AT] + _pack_sum(checksum ^ mask)


def unbound_name(path: str) -> str:
    """Return the URI that opens a database whose pages are not bound to their numbers (of format
    3)."""
    return f"file:{quote(os.path.abspath(path))}?{_UNBOUND}=unbound"


def has_bound_pages(name: str | apsw.URIFilename | None, flags: list[int]) -> bool:
    """Return whether a file that SQLite opens is a database whose pages are bound."""
    if not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
        return False
    return not isinstance(name, apsw.URIFilename) or name.uri_parameter(_UNBOUND) is None


class BindingVfs(apsw.VFS):
    """The VFS. It exists until the process ends.

    Arguments:
        base: the VFS that accesses the disk.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        super().__init__(BINDING_VFS, base)

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if has_bound_pages(name, flags):
            return _BoundFile(self._base, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _UnboundFile(self._base, name, flags)
        return apsw.VFSFile(self._base, name, flags)


class _BoundFile(apsw.VFSFile):
    """The file of a database. These two methods run for each page read and written."""

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        data = _read(self, amount, offset)
        if amount != PAGE_BYTES:
            return data
        # A page beyond the end of the file would be read as zeros.
        return masked(data if len(data) == PAGE_BYTES else _ZEROS, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        _write(self, masked(bytes(data), offset) if len(data) == PAGE_BYTES else data, offset)


class _UnboundFile(apsw.VFSFile):
    """The file of a database of format 3. Its pages have checksums without a mask.

    A page of zeros passes, as it did in format 3: the last page of a long value that ends with
    zeros is one. SQLite's own check finds any other page that reads as zeros: a page of a tree, or
    an earlier page of a long value. Bodies in the records have a checksum of their own.
    """

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        data = _read(self, amount, offset)
        if amount != PAGE_BYTES or len(data) == PAGE_BYTES:
            return data
        # A page beyond the end of the file would be read as zeros.
        return _ZEROS[:_SUM_AT] + _NEVER_RIGHT
