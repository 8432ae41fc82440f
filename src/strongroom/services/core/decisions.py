"""The form of a decision: which records it reads, and what it commits because of them.

Lives here: `Decision`, the base class of all of them, and the named reads. `Reads` collects what is
to be read, and `Found` has what was read. Source: rule 4 of engines/base.py.

A decision is a frozen value. Its fields hold everything that it depends on: the request, wall time,
account settings, fresh ids. So it can run again with the same outcome. It returns its results in
the commit and nowhere else.

No decision knows the positions of its records. `reads.add(ref, codec)` returns a `ReadOne`, which
the decision keeps in a field. `found[read]` is the value of that record:

    reads = Reads()
    share = reads.add(keys.share(account, name), records.SHARE)
    ...
    record = found[share]  # ShareRecord | None
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, final, overload

import msgspec

from strongroom.engines.base import Commit, Partition, Record, Ref
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.values import Purpose

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Decodes(Protocol[R_co]):
    """Decodes the bytes of one type of record, as `Codec` does."""

    def decode(self, data: bytes, /) -> R_co: ...


class _Undecoded:
    """The codec of records that a decision needs only as bytes, or does not look into."""

    def decode(self, data: bytes, /) -> bytes:
        return data


UNDECODED: Final = _Undecoded()


class ReadOne(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """One record to read; made by `Reads.add`. `index` is its position among all reads."""

    ref: Ref
    index: int
    codec: Decodes[R_co]


class ReadAll(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """Several records of one type; made by `Reads.add_all`. `first` is the position of the first
    one among all reads."""

    refs: tuple[Ref, ...]
    first: int
    codec: Decodes[R_co]


class Reads:
    """Collects the records that a decision or a view reads.

    Arguments:
        refs: begin with these, to which another `Reads` has made `ReadOne`s.

    Attributes:
        refs: all records, in the order in which they were added.
    """

    __slots__ = ("refs",)

    def __init__(self, refs: Iterable[Ref] = ()) -> None:
        self.refs: list[Ref] = list(refs)

    def add(self, ref: Ref, codec: Decodes[R]) -> ReadOne[R]:
        refs = self.refs
        read = ReadOne(ref, len(refs), codec)
        refs.append(ref)
        return read

    def add_all(self, refs: Iterable[Ref], codec: Decodes[R]) -> ReadAll[R]:
        """There may be none."""
        added = ReadAll(tuple(refs), len(self.refs), codec)
        self.refs.extend(added.refs)
        return added


class Found:
    """The records that were read, in the order of the reads. Each is decoded when it is first asked
    for."""

    __slots__ = ("_records", "_values")

    def __init__(self, records: Sequence[Record | None]) -> None:
        self._records = records
        self._values: dict[object, Any] = {}

    @overload
    def __getitem__(self, read: ReadOne[R]) -> R | None: ...

    @overload
    def __getitem__(self, read: ReadAll[R]) -> tuple[R | None, ...]: ...

    def __getitem__(self, read: ReadOne[Any] | ReadAll[Any]) -> Any:
        """None for an absent record; several values in their order. Raises: DamagedRecord."""
        if isinstance(read, ReadOne):
            if read.index not in self._values:
                record = self._records[read.index]
                value = None if record is None else read.codec.decode(record.value)
                self._values[read.index] = value
            return self._values[read.index]
        key = read.first, len(read.refs)
        if key not in self._values:
            decode = read.codec.decode
            self._values[key] = tuple(
                [None if one is None else decode(one.value) for one in self.records(read)]
            )
        return self._values[key]

    def require(self, read: ReadOne[R], missing: ErrorCode) -> R:
        value = self[read]
        if value is None:
            raise StorageError(missing)
        return value

    def record(self, read: ReadOne[Any]) -> Record | None:
        """Return the record itself, with its version."""
        return self._records[read.index]

    def records(self, reads: ReadAll[Any]) -> Sequence[Record | None]:
        """Return the records themselves, in their order."""
        return self._records[reads.first : reads.first + len(reads.refs)]

    def by_ref(self, refs: Sequence[Ref]) -> dict[Ref, Record | None]:
        """Return all records by their addresses. `refs` are those of all reads, in their order."""
        return dict(zip(refs, self._records, strict=True))

    def version(self, read: ReadOne[Any]) -> int | None:
        record = self._records[read.index]
        return None if record is None else record.version


class Decision(msgspec.Struct, Generic[T], frozen=True):
    """One decision, which the engine runs at the serial point. `Services.commit` submits it.

    Arguments:
        partition: the partition that it changes, and whose records guard the commit.
        reads: the records that it is given: `Reads.refs` itself, which may still grow until the
            decision is submitted. Those of other partitions are inputs.
        purpose: what it may use on a full disk.
    """

    partition: Partition
    reads: Sequence[Ref]
    purpose: Purpose

    @final
    def run(self, records: Sequence[Record | None], stamp: int) -> Commit[T]:
        """Decide on the records of `reads`, which are in its order. The engine calls it."""
        return self.decide(Found(records), stamp)

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        """Return the commit. An exception refuses the request and changes nothing.

        Arguments:
            found: the records of `reads`.
            stamp: the commit's stamp, in store time.
        """
        # Every kind of decision overrides it; the base itself is never run.
        raise NotImplementedError
