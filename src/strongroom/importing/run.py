"""The steps of an import, from the folder to a data directory that `doctor` calls whole.

Lives here: `import_folder`, and the order in which databases and collections are read. Must not
live here: what becomes of a record (places.py, blobs.py, messages.py, entities.py).

    1.  The target is begun: it has UNFINISHED until the end, and nothing opens it meanwhile.
    2.  Each database is read some times, front to back: places first, then what is in them.
    3.  The store is closed. Everything in it is durable.
    4.  The folder is compared with what it was at the beginning.
    5.  The target is checked as `doctor` does.
    6.  UNFINISHED becomes FORMAT.

A failure in any step deletes the target. A kill leaves it with UNFINISHED, and the next import
begins anew.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from strongroom.clock import Clock, SystemClock, elapsed_s
from strongroom.engines.embedded.disk.directory import Format
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.engines.embedded.upkeep.copy_target import PRIVATE_NAMES, CopyTarget
from strongroom.importing import documents, services
from strongroom.importing.folder import PEER_NAMES, Folder, ImportRefused
from strongroom.importing.report import ImportReport, ReportDraft
from strongroom.importing.session import ImportSession
from strongroom.store.integrity import Integrity

Progress = Callable[[int, int], None]
"""progress(bytes of databases read, total bytes)."""

_StrPath = str | os.PathLike[str]
_STAMP: Final = Format(foreign_etags=True)
# The ballast of a data directory is filled when it is served.
_OPTIONS: Final = EmbeddedOptions(ballast_bytes=0)


class ImportUnsound(ImportRefused):
    """The new data directory did not pass its check, and was deleted."""


def import_folder(
    source: _StrPath,
    target: _StrPath,
    *,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> ImportReport:
    """Make a new data directory from a folder of Azurite, which stays as it is.

    Dates and ETags are kept. The account keys are not in the folder: the caller gives them to the
    server. May not be called on a thread that runs an event loop.

    Arguments:
        source: the folder that Azurite was started with (`--location`). Azurite must not run.
        target: a directory that does not exist, is empty, or holds the rest of a killed import. It
            may be `source` itself: then the new files lie beside the old ones.
        progress: called as the databases are read.
        clock: the source of time and of random bytes; None = the system's.

    Returns: what was imported, and what was not. A record that cannot be imported does not end the
        import: see `ImportReport.is_complete`.

    Raises: NotAnAzuriteFolder; FolderChanged (Azurite runs); FileExistsError (the target holds
        something else); ImportUnsound; OSError; the engine's errors (a full disk). Nothing is left
        in the target then.
    """
    began_s, draft = elapsed_s(), ReportDraft()
    folder = Folder(source)
    beside = PEER_NAMES if os.path.realpath(target) == os.path.realpath(source) else ()
    with CopyTarget(target, _STAMP, beside=(*beside, *_private_there(target))) as making:
        counted = _Counted(folder, progress)
        asyncio.run(_fill(folder, making.building, draft, counted.advanced, clock or SystemClock()))
        making.adopt_built()
        counted.end()
        folder.require_unchanged()
        _require_whole(making.layout.path)
        making.finish()
    return draft.finish(folder.path, making.layout.path, elapsed_s() - began_s)


def _private_there(target: _StrPath) -> list[str]:
    """Return the files of keys and roles that an operator has put there."""
    return [name for name in PRIVATE_NAMES if os.path.lexists(os.path.join(target, name))]


class _Counted:
    """Counts the bytes of all passes over the databases."""

    def __init__(self, folder: Folder, progress: Progress | None) -> None:
        sizes = zip(documents.DATABASES, services.PASSES, strict=True)
        self._total = sum(folder.size_bytes(name) * passes for name, passes in sizes)
        self._done = 0
        self._progress = progress

    def advanced(self, size_bytes: int) -> None:
        self._done += size_bytes
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Note that no more will be read: a pass for which there is no record is left out."""
        self.advanced(self._total - self._done)


async def _fill(
    folder: Folder,
    directory: str,
    draft: ReportDraft,
    advanced: Callable[[int], None],
    clock: Clock,
) -> None:
    store = await open_store(directory, clock, options=_OPTIONS)
    try:
        session = ImportSession(store, clock, folder, draft, advanced)
        await services.import_blob_service(session)
        await services.import_queue_service(session)
        await services.import_table_service(session)
    finally:
        await store.close()


def _require_whole(directory: str) -> None:
    """Check the records, the bodies, and that everything refers to what is there. Raises
    ImportUnsound."""
    with Inspection(directory, stamp=_STAMP) as inspection:
        flaws = [*inspection.findings(), *Integrity(inspection).findings()]
    if flaws:
        raise ImportUnsound(
            f"the imported data does not pass its check, so nothing was imported: {flaws[0].place}:"
            f" {flaws[0].problem}; {len(flaws)} problems in all"
        )
