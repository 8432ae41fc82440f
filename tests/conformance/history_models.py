"""Models for the history checker: an append blob, a page blob, and writes under a lease.

They are pure step functions over what a client sees, as the shipped ones
(src/strongroom/testing/models.py). ETags are numbers here, because they rise (B-ETG-02): the writes
that were answered have one order, and only the place of reads, refusals and lost writes is
searched. Must not live here: how calls are sent.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from strongroom.testing.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that says that nothing was changed."""

    code: str


# --- append blobs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Append:
    """Append the block `number`, if the blob has `position` bytes and would not exceed `size_max`
    (None: whatever it has)."""

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
    """Where the block begins, and how many blocks there are."""

    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a read showed, as a digest of the numbers in their order."""

    count: int
    digest: int


class Log(NamedTuple):
    """An append blob."""

    size: int
    blocks: int
    digest: int
    sealed: bool


def block(number: int) -> bytes:
    """The bytes of a block; some lie in the record, some in a content of their own."""
    return b"%d" % number + b" " * (1, 900, 20_000)[number % 3]


def blocks(content: bytes) -> Blocks:
    """What a read showed. Raises AssertionError for a content that is not a row of whole blocks."""
    numbers = [int(one) for one in content.split()]
    assert content == b"".join(map(block, numbers)), "a torn or lost block"
    digest = 0
    for number in numbers:
        digest = hash((digest, number))
    return Blocks(len(numbers), digest)


class AppendModel:
    """One append blob, which exists and is empty at first."""

    def initial(self, object_key: str) -> Log:
        """Every blob begins alike."""
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
        """Reads and refusals only look."""
        return isinstance(result, Refused | Blocks)

    def version(self, state: Log) -> Hashable | None:
        """The size: it only grows."""
        return state.size

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """The size that an append found."""
        return result.offset if isinstance(result, Appended) else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Nothing can be left out."""
        return operations


# --- page blobs ---------------------------------------------------------------------------------

CELL: Final = 24 * 1024
CELLS: Final = 4
PAGE_BLOB_BYTES: Final = CELL * CELLS


@dataclass(frozen=True, slots=True)
class WriteCells:
    """Write `mark` to some cells of the blob, or clear them (mark 0), if the sequence number is
    `number` (None: whatever it is) and the ETag is `if_match`.

    `after`: the ETag of the answered write before; filled in by the model.
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
    """What a write answers."""

    etag: int
    number: int


@dataclass(frozen=True, slots=True)
class Cells:
    """What a read shows: the mark of each cell, 0 for zeros."""

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
    """The marks that a read shows. Raises AssertionError for a cell of more than one write."""
    found = []
    for start in range(0, len(content), CELL):
        cell = content[start : start + CELL]
        assert cell == cell[:8] * (CELL // 8), "a torn cell"
        found.append(0 if cell == bytes(CELL) else int(cell[:8]))
    return tuple(found)


class PageModel:
    """One page blob of CELLS cells that exists, with nothing in it and the number 0.

    Arguments:
        etags: that the blobs have at first, by the object's key.
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
        # An ETag that nobody was told may be the wanted one, or not.
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
        """Reads and refusals only look."""
        return isinstance(result, Refused | Cells)

    def version(self, state: Paged) -> Hashable | None:
        """The ETag: none comes back."""
        return state.etag

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """The ETag that a read showed."""
        return result.etag if isinstance(result, Cells) else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Tells each write that was answered which answered write comes before it."""
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
    """Acquire the lease, without end, under this id."""

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
    """A blob, whatever it holds, of which only the lease counts: nobody holds it at first."""

    def initial(self, object_key: str) -> str:
        """The holder's id; "" = nobody."""
        return ""

    def step(self, state: str, call: Hashable, result: Hashable) -> Iterable[str]:
        """The states after one call."""
        after, answer = _under_lease(state, call)
        if result is UNKNOWN:
            return [after]
        return [after] if result == answer else []

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """What writes do to the content does not count."""
        return isinstance(call, GuardedWrite) or isinstance(result, Refused)

    def version(self, state: str) -> Hashable | None:
        """None: an id may hold the lease again."""
        return None

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """None, as `version`."""
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Nothing can be left out."""
        return operations


def _under_lease(holder: str, call: Hashable) -> tuple[str, Hashable]:
    """The holder afterwards, and the answer."""
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
