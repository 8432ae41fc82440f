"""What the scrub keeps over restarts: where its pass is, and what it has found damaged.

Lives here: the structs, and their file `scrub.json`. Must not live here: reading what is scrubbed
(scrub.py). The file is no part of the directory's format. Without it, or with one that cannot be
read, a pass begins anew, which costs time only. A backup does not have it. Other versions of the
program leave it alone.
"""

from __future__ import annotations

import logging
import os
from typing import Final, Literal

import msgspec

from strongroom.engines.base import Key, Partition, Ref
from strongroom.engines.embedded.disk.files import Files, write_file
from strongroom.engines.embedded.records.checksummed_pages import record_name
from strongroom.engines.embedded.records.record_walk import WalkPosition

FILE_NAME: Final = "scrub.json"
_FILE_BYTES_MAX: Final = 16 * 1024 * 1024

Part = Literal["log", "face", "hidden", "segments"]
"""What a pass reads, in this order: the log, both tables of records, the contents."""

_log = logging.getLogger(__name__)


class DamagedPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is damaged.

    Attributes:
        kind: `record` is one record; `records` what cannot be read as a whole.
        number: the id of a segment or of a content; of `records`, which part.
        table: 0 has the face records, 1 the hidden ones.
    """

    kind: Literal["log", "record", "records", "segment", "content"]
    number: int = 0
    table: int = 0
    keyspace: bytes = b""
    partition: bytes = b""
    name: bytes = b""

    @property
    def position(self) -> WalkPosition:
        return self.keyspace, self.partition, self.name

    @property
    def ref(self) -> Ref:
        return Ref(Partition(self.keyspace, self.partition), Key(bool(self.table), self.name))

    def text(self) -> str:
        if self.kind == "record":
            return f"the {record_name(self.ref)}"
        if self.kind == "segment":
            return f"segment {self.number:016x}"
        if self.kind == "content":
            return f"content {self.number}"
        return "the log of the records" if self.kind == "log" else "the records"


def record_place(ref: Ref) -> DamagedPlace:
    """Return the place of a record."""
    (keyspace, partition), (hidden, name) = ref
    return DamagedPlace("record", 0, int(hidden), keyspace, partition, name)


class KeptFinding(msgspec.Struct, frozen=True):
    """A place that is damaged.

    Attributes:
        found_s: when it was found first, in seconds since 1970.
        pass_s: when the pass began that has seen it last.
    """

    place: DamagedPlace
    problem: str
    found_s: float
    pass_s: float


class PassPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a pass goes on.

    Attributes:
        keyspace, partition, name: the next record, in a table.
        segment: the present segment; 0 = the first.
        content: the last content of it that was checked.
    """

    part: Part = "log"
    keyspace: bytes = b""
    partition: bytes = b""
    name: bytes = b""
    segment: int = 0
    content: int = 0

    @property
    def record(self) -> WalkPosition:
        return self.keyspace, self.partition, self.name


class KeptScrub(msgspec.Struct, frozen=True):
    """The state of the scrub. Times are in seconds since 1970, by the wall clock.

    Attributes:
        began_s: when the present pass, or the last one, began; None = there was none.
        is_running: whether that pass is not complete.
        ended_s: when a pass was complete last.
        read_bytes: what the pass has read.
        more: how many places beyond FINDINGS_MAX (state.py) the pass has found damaged.
    """

    began_s: float | None = None
    is_running: bool = False
    ended_s: float | None = None
    position: PassPosition = PassPosition()
    read_bytes: int = 0
    findings: tuple[KeptFinding, ...] = ()
    more: int = 0


def load(directory: str) -> KeptScrub:
    """Return what was kept; the beginning if there is nothing that can be used."""
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, "rb") as file:
            data = file.read(_FILE_BYTES_MAX)
        return msgspec.json.decode(data, type=KeptScrub)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        _log.info("%s cannot be used, so the scrub begins anew: %s", path, error)
    return KeptScrub()


def save(directory: str, files: Files, kept: KeptScrub) -> None:
    """Replace what is kept, whole or not at all. Raises OSError."""
    path = os.path.join(directory, FILE_NAME)
    new = f"{path}.new"
    if os.path.lexists(new):  # an earlier attempt was interrupted
        files.unlink(new)
    try:
        write_file(files, new, msgspec.json.encode(kept))
        files.rename(new, path)
    except OSError:
        if os.path.lexists(new):
            files.unlink(new)  # it may have filled the disk
        raise
    files.sync_directory(directory)
