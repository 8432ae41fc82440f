"""Models for the history checker: an append blob, a page blob, and writes under a lease.

They are pure step functions of the calls and answers, like the shipped models
(src/strongroom/testing/models.py). ETags are numbers here, because they rise (B-ETG-02). So the
answered writes have one order, and only the positions of reads, refusals and lost writes are
searched. Must not live here: the sending of calls.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that says that the blob was not changed."""

    code: str


# --- append blobs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Append:
    """Append the block `number`, under the conditions `position` and `size_max` (None: no
    condition)."""

    number: int
    position: int | None = None
    size_max: int | None = None


@dataclass(frozen=True, slots=True)
class Seal:
    """Nothing can be appended afterwards."""


@dataclass(frozen=True, slots=True)
class ReadBlocks:
    """Read the whole blob: the numbers of its blocks."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The offset of the block, and the number of blocks after it."""

    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """The content of a read, as a digest of the block numbers in their order."""

    count: int
    digest: int


class Log(NamedTuple):
    """An append blob."""

    size: int
    blocks: int
    digest: int
    sealed: bool


def block(number: int) -> bytes:
    """Return the bytes of a block; some blocks lie in the record, some in a content of their
    own."""
    return b"%d" % number + b" " * (1, 900, 20_000)[number % 3]


def blocks(content: bytes) -> Blocks:
    """Return the result of a read. Raises AssertionError for a content that is not whole blocks."""
    numbers = [int(one) for one in content.split()]
    assert content == b"".join(map(block, numbers)), "a torn or lost block"
    digest = 0
    for number in numbers:
        digest = hash((digest, number))
    return Blocks(len(numbers), digest)


class AppendModel:
    """One append blob, which exists and is empty at first."""

    def initial(self, object_key: str) -> Log:
        """Return the state of an empty blob."""
        return Log(0, 0, 0, False)

    def step(self, state: Log, call: Hashable, result: Hashable) -> Iterable[Log]:
        """The states after one call."""
        match call:
            case ReadBlocks():
                shown = Blocks(state.blocks, state.digest)
                return [state] if result is UNKNOWN or result == shown else []
            case Seal():
                return [state._replace(sealed=True)]
            case Append():
                refusal = self._refusal(state, call)
                if refusal is not None:
                    return [state] if result is UNKNOWN or result == refusal else []
                if result is UNKNOWN or result == Appended(state.size, state.blocks + 1):
                    return [self._appended(state, call)]
                return []
        raise TypeError(f"not a call on an append blob: {call!r}")

    def _refusal(self, state: Log, call: Append) -> Refused | None:
        if call.size_max is not None and state.size + len(block(call.number)) > call.size_max:
            return Refused("MaxBlobSizeConditionNotMet")
        if call.position not in (None, state.size):
            return Refused("AppendPositionConditionNotMet")
        return Refused("BlobIsSealed") if state.sealed else None

    def _appended(self, state: Log, call: Append) -> Log:
        size = state.size + len(block(call.number))
        return Log(size, state.blocks + 1, hash((state.digest, call.number)), state.sealed)

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the call is a read or was refused."""
        return isinstance(result, Refused | Blocks)

    def version(self, state: Log) -> Hashable | None:
        """Return the size, which only grows."""
        return state.size

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return the size before an append."""
        return result.offset if isinstance(result, Appended) else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Return all operations, since none can be left out."""
        return operations


# --- page blobs ---------------------------------------------------------------------------------

CELL: Final = 24 * 1024
CELLS: Final = 4
PAGE_BLOB_BYTES: Final = CELL * CELLS


@dataclass(frozen=True, slots=True)
class WriteCells:
    """Write `mark` to some cells of the blob, or clear them (mark 0). The conditions are the
    sequence number `number` (None: any) and the ETag `if_match`.

    `after`: the ETag of the previous answered write, which the model sets.
    """

    first: int
    count: int
    mark: int
    number: int | None = None
    if_match: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Increment:
    """Add one to the sequence number."""

    after: int | None = None


@dataclass(frozen=True, slots=True)
class ReadCells:
    """Read the whole blob."""


@dataclass(frozen=True, slots=True)
class Written:
    """The answer of a write."""

    etag: int
    number: int


@dataclass(frozen=True, slots=True)
class Cells:
    """The result of a read: the mark of each cell, 0 for zeros."""

    etag: int
    number: int
    marks: tuple[int, ...]


class Paged(NamedTuple):
    """A page blob.

    Arguments:
        etag: None after a write whose answer was lost.
        answered: the ETag of the last write whose answer came.
    """

    etag: int | None
    answered: int
    number: int
    marks: tuple[int, ...]


def cells_of(mark: int, count: int) -> bytes:
    """The body of a write."""
    return b"%08d" % mark * (CELL // 8 * count)


def marks_of(content: bytes) -> tuple[int, ...]:
    """Return the marks in a read content. Raises AssertionError for a cell with parts of two
    writes."""
    found = []
    for start in range(0, len(content), CELL):
        cell = content[start : start + CELL]
        assert cell == cell[:8] * (CELL // 8), "a torn cell"
        found.append(0 if cell == bytes(CELL) else int(cell[:8]))
    return tuple(found)


class PageModel:
    """One page blob of CELLS cells that exists, with zeros and the number 0.

    Arguments:
        etags: the first ETag of each blob, by the object's key.
    """

    def __init__(self, etags: Mapping[str, int]) -> None:
        self._etags = etags

    def initial(self, object_key: str) -> Paged:
        """An empty blob."""
        etag = self._etags[object_key]
        return Paged(etag, etag, 0, (0,) * CELLS)

    def step(self, state: Paged, call: Hashable, result: Hashable) -> Iterable[Paged]:
        """The states after one call."""
        match call:
            case ReadCells():
                return [state] if result is UNKNOWN else self._read(state, result)
            case WriteCells() | Increment():
                return self._write(state, call, result)
        raise TypeError(f"not a call on a page blob: {call!r}")

    def _read(self, state: Paged, result: Hashable) -> list[Paged]:
        assert isinstance(result, Cells)
        if (result.number, result.marks) != (state.number, state.marks):
            return []
        if state.etag is None and result.etag > state.answered:
            return [state._replace(etag=result.etag)]
        return [state] if result.etag == state.etag else []

    def _write(
        self, state: Paged, call: WriteCells | Increment, result: Hashable
    ) -> Iterable[Paged]:
        unmet = Refused("ConditionNotMet")
        wanted, number = None, None
        if isinstance(call, WriteCells):
            wanted, number = call.if_match, call.number
        # An ETag of a lost answer may or may not be the wanted one.
        is_unsure = wanted is not None and state.etag is None
        if wanted is not None and wanted != state.etag and (not is_unsure or result == unmet):
            return [state] if result in (UNKNOWN, unmet) else []
        if number not in (None, state.number):
            refusal = Refused("SequenceNumberConditionNotMet")
            return [state] if result in (UNKNOWN, refusal) else []
        after = _changed(state, call)
        if result is UNKNOWN:
            return [after._replace(etag=None), *([state] if is_unsure else [])]
        if not isinstance(result, Written) or result.number != after.number:
            return []
        if call.after != state.answered or result.etag <= (state.etag or state.answered):
            return []
        return [after._replace(etag=result.etag, answered=result.etag)]

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the call is a read or was refused."""
        return isinstance(result, Refused | Cells)

    def version(self, state: Paged) -> Hashable | None:
        """Return the ETag, which never recurs."""
        return state.etag

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return the ETag in the result of a read."""
        return result.etag if isinstance(result, Cells) else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Set for each answered write the answered write before it."""
        if not operations:
            return operations
        first = self._etags[operations[0].object_key]
        etags = sorted({one.result.etag for one in operations if isinstance(one.result, Written)})
        before = dict(zip(etags, [first, *etags], strict=False))
        return [
            replace(one, call=replace(one.call, after=before[one.result.etag]))
            if isinstance(one.result, Written) and isinstance(one.call, WriteCells | Increment)
            else one
            for one in operations
        ]


def _changed(state: Paged, call: WriteCells | Increment) -> Paged:
    if isinstance(call, Increment):
        return state._replace(number=state.number + 1)
    end = call.first + call.count
    marks = (*state.marks[: call.first], *[call.mark] * call.count, *state.marks[end:])
    return state._replace(marks=marks)


# --- writes under a lease -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Take:
    """Acquire the infinite lease with this id."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Release the lease."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class GuardedWrite:
    """Any write of the blob, with this id or none."""

    lease_id: str | None
    kind: str


DONE: Final = "done"


class GuardedModel:
    """A blob of which only the lease counts; it has no lease at first."""

    def initial(self, object_key: str) -> str:
        """Return the lease id of the holder; "" = no holder."""
        return ""

    def step(self, state: str, call: Hashable, result: Hashable) -> Iterable[str]:
        """The states after one call."""
        after, answer = _under_lease(state, call)
        if result is UNKNOWN:
            return [after]
        return [after] if result == answer else []

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the lease stays the same, since the content does not count."""
        return isinstance(call, GuardedWrite) or isinstance(result, Refused)

    def version(self, state: str) -> Hashable | None:
        """Return None, since an id may hold the lease again."""
        return None

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return None, like `version`."""
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Return all operations, since none can be left out."""
        return operations


def _under_lease(holder: str, call: Hashable) -> tuple[str, Hashable]:
    """Return the holder afterwards, and the answer."""
    match call:
        case Take(lease_id):
            taken = holder in ("", lease_id)
            return (lease_id, DONE) if taken else (holder, Refused("LeaseAlreadyPresent"))
        case GiveBack(lease_id):
            if holder == lease_id:
                return "", DONE
            return holder, Refused("LeaseIdMismatchWithLeaseOperation")
        case GuardedWrite(lease_id):
            if holder == (lease_id or ""):
                return holder, DONE
            if lease_id is None:
                return holder, Refused("LeaseIdMissing")
            lost = (
                "LeaseIdMismatchWithBlobOperation" if holder else "LeaseNotPresentWithBlobOperation"
            )
            return holder, Refused(lost)
    raise TypeError(f"not a call on a lease or a leased blob: {call!r}")
