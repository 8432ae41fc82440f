"""Connections to SQLite that verify every page of the database when it is read.

Lives here: the checksum VFS, how a connection is set up, and which errors of SQLite mean damage.
Must not live here: SQL of records (records/sqlite.py). Source: "The Checksum VFS Shim" of SQLite's
documentation; apsw ships it as an extension.

The last eight bytes of each page are a checksum of the rest of the page and of the page's number
(bound_pages.py). A checkpoint writes it with the page into the database. The log's frames have
checksums of their own, which SQLite verifies when it opens the log.
"""

from __future__ import annotations

import threading
from typing import Final

import apsw
import apsw.sqlite_extra

from strongroom.engines.base import DataDamaged, EngineError, Ref, Unavailable
from strongroom.engines.embedded.records.bound_pages import (
    BINDING_VFS,
    PAGE_BYTES,
    BindingVfs,
    unbound_name,
)
from strongroom.engines.embedded.records.database_space import grow_in_chunks
from strongroom.engines.embedded.records.shared_index import (
    allocate_before_mapping,
    is_without_space,
)

CHECKSUM_VFS: Final = "cksmvfs"
_EXTENSION: Final = "cksumvfs"
_CHECKSUM_BYTES: Final = 8
BUSY_TIMEOUT_MS: Final = 5000
_registering = threading.Lock()
_below: list[BindingVfs] = []  # SQLite keeps no reference to it


def register_checksum_vfs() -> None:
    """Register CHECKSUM_VFS over BINDING_VFS with SQLite. The process's default VFS stays
    unchanged. Idempotent.

    Raises: Unavailable when this build of apsw comes without it.
    """
    with _registering:
        if CHECKSUM_VFS in apsw.vfs_names():
            return
        default = apsw.vfs_names()[0]
        connection = apsw.Connection(":memory:")
        try:
            if not _below:
                _below.append(BindingVfs(default))
            apsw.set_default_vfs(BINDING_VFS)  # the extension puts itself over the default
            apsw.sqlite_extra.load(connection, _EXTENSION)
        except (apsw.Error, apsw.sqlite_extra.NotAvailable, LookupError) as error:
            raise Unavailable(
                f"this build of apsw has no checksums for SQLite's pages ({_EXTENSION}): {error}. "
                "Install apsw from its wheel: pip install --only-binary=apsw apsw"
            ) from error
        finally:
            connection.close()
            apsw.set_default_vfs(default)


def connect(
    path: str,
    vfs: str | None,
    cache_kib: int,
    schema: str | None = None,
    *,
    is_bound: bool = True,
) -> apsw.Connection:
    """Return a connection set up for durable commits, manual checkpoints and verified pages.

    Arguments:
        vfs: a VFS over CHECKSUM_VFS; None is CHECKSUM_VFS itself.
        schema: create the database with it.
        is_bound: whether the pages are bound to their numbers; they are not in format 3.

    Raises: apsw.Error; DataDamaged when the file's header says that its pages have no checksums;
        Unavailable when this build of apsw cannot verify them.
    """
    register_checksum_vfs()
    allocate_before_mapping()
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if schema is None else apsw.SQLITE_OPEN_CREATE)
    name = path if is_bound else unbound_name(path)
    flags |= 0 if is_bound else apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags, vfs=vfs or CHECKSUM_VFS)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if schema is not None:
            connection.reserve_bytes(reserve=_CHECKSUM_BYTES)
            connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("fullfsync", True)
        connection.pragma("checkpoint_fullfsync", True)
        connection.pragma("wal_autocheckpoint", 0)
        grow_in_chunks(connection)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -cache_kib)
        if schema is not None:
            connection.execute(f"BEGIN; {schema} COMMIT")
        _check_verifies(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_verifies(connection: apsw.Connection, path: str) -> None:
    """Refuse a file whose header says that its pages have no checksums. The header decides whether
    SQLite verifies pages, so damage there could turn that off."""
    if connection.pragma("checksum_verification") not in (1, "1"):
        raise DataDamaged(f"{path}: its header does not say that its pages have checksums")


def create_copy(path: str, vfs: str | None, schema: str) -> apsw.Connection:
    """Create an empty database as the target of a copy, and return its connection. Its first page
    is written at once: the VFS writes checksums only if the first page requires them."""
    register_checksum_vfs()
    target = apsw.Connection(path, vfs=vfs or CHECKSUM_VFS)
    try:
        target.reserve_bytes(reserve=_CHECKSUM_BYTES)
        target.pragma("page_size", PAGE_BYTES)
        target.pragma("journal_mode", "off")
        target.pragma("user_version", 1)
        target.execute(schema)
        target.execute("DELETE FROM meta")
    except BaseException:
        target.close()
        raise
    return target


def checkpoint(connection: apsw.Connection, truncate: bool) -> bool:
    """Write the log back to the database. Return whether all of it was written. Raises
    apsw.Error."""
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
    try:
        frames, done = connection.wal_checkpoint(mode=mode)
    except apsw.BusyError:
        return False
    return frames == done


def log_frames(connection: apsw.Connection) -> int | None:
    """Return how many frames of the log SQLite counts; its next commit is written after them.
    Return None when SQLite cannot tell at present. A passive checkpoint is made for that. Raises
    apsw.Error."""
    try:
        frames, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except (apsw.BusyError, apsw.FullError):
        return None
    return frames if frames >= 0 else None


def stop_verifying(connection: apsw.Connection) -> None:
    """Let this connection read damaged pages without verification, to find out what is in them."""
    connection.pragma("checksum_verification", False)


def is_damage(error: BaseException) -> bool:
    """Return whether SQLite read a page whose checksum differs."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA


def is_full(error: BaseException) -> bool:
    """Return whether SQLite found the disk full. Call it in the thread that got the error."""
    return isinstance(error, apsw.FullError) or is_without_space(error)


def record_name(ref: Ref) -> str:
    """Return a record's address as text for logs."""
    kind = "hidden record" if ref.key.hidden else "record"
    return f"{kind} {ref.partition.keyspace!r} {ref.partition.name!r} {ref.key.name!r}"


def unreadable(error: apsw.Error, what: str = "the records") -> EngineError:
    """Return the error for a caller when reading `what` failed: DataDamaged or Unavailable."""
    if is_damage(error):
        return DataDamaged(f"{what}: the checksum of its page in the records' file differs")
    return Unavailable(f"{what} cannot be read: {reason(error)}")


def reason(error: apsw.Error) -> str:
    """Return why SQLite failed, as text for an operator."""
    if is_full(error):
        return "the disk is full; free some space in the file system"
    return str(error)
