"""Requests and tables of opens, in the notation of the tests of admission."""

from __future__ import annotations

from strongroom.semantics.file import accesses, opens, oplocks
from strongroom.semantics.file.accesses import Disposition, FileOperation, Use
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import (
    Admission,
    BreakAwaited,
    HandleRequest,
    OpenAdmitted,
    OpenRefused,
    OpenTable,
    RestRequest,
)
from strongroom.semantics.file.oplocks import Caching, CachingHolder, CachingKey, CachingKind

FILE = FileFacts()
EMPTY = OpenTable()
R, W, D = Use.READ, Use.WRITE, Use.DELETE
ALL = R | W | D
USES = {
    "none": Use.NONE, "R": R, "W": W, "D": D, "R+W": R | W, "R+D": R | D, "W+D": W | D,
    "R+W+D": ALL,
}  # fmt: skip
STATES = {
    "-": Caching.NONE, "R": oplocks.R, "RH": oplocks.RH, "RW": oplocks.RW, "RWH": oplocks.RWH,
}  # fmt: skip


def key(name: str) -> CachingKey:
    return (name.encode(), b"lease")


def mask_of(uses: Use) -> int:
    rights = {R: accesses.READ_DATA, W: accesses.WRITE_DATA, D: accesses.DELETE}
    return accesses.READ_ATTRIBUTES | sum(right for use, right in rights.items() if use & uses)


def handle(
    open_id: int,
    access: Use = R,
    share: Use = ALL,
    *,
    lease: str = "",
    wanted: str = "-",
    disposition: Disposition = Disposition.OPEN,
) -> HandleRequest:
    """Return a CREATE: with a lease of the given name, otherwise with an oplock of the same
    caching."""
    return HandleRequest(
        open_id,
        mask_of(access),
        share,
        disposition,
        key(lease) if lease else None,
        CachingKind.LEASE_V2 if lease else CachingKind.OPLOCK,
        STATES[wanted],
    )


def rest(open_id: int, operation: FileOperation) -> RestRequest:
    return RestRequest(open_id, operation)


def admit(
    table: OpenTable, request: HandleRequest | RestRequest, node: FileFacts = FILE
) -> Admission:
    if isinstance(request, HandleRequest):
        return opens.admit_handle(table, request, node)
    return opens.admit_rest(table, request, node)


def entered(table: OpenTable, *requests: HandleRequest | RestRequest) -> OpenTable:
    """Return the table after all of the requests, none of which waits."""
    for request in requests:
        result = admit(table, request)
        assert isinstance(result, OpenAdmitted), result
        table = result.table
    return table


def outcome_of(result: Admission) -> str:
    """Return `ok`, `409 SharingViolation`, or `wait`."""
    if isinstance(result, OpenRefused):
        return f"{result.row.status} {result.row.code}"
    return "wait" if isinstance(result, BreakAwaited) else "ok"


def answered(table: OpenTable, who: CachingKey) -> OpenTable:
    """Return the table after the holder has acknowledged every notice that it gets."""
    holder = opens.holder_of(table, who)
    while holder is not None and (break_to := holder.break_to) is not None:
        if holder.kind is CachingKind.OPLOCK:
            level = {state: level for level, state in oplocks.LEVELS.items()}[break_to]
            holder, _, status = oplocks.oplock_acknowledged(holder, level)
            assert status is None
        else:
            result = oplocks.lease_acknowledged(holder, break_to)
            assert isinstance(result, tuple)
            holder = result[0]
        table = opens.with_holder(table, holder)
    return table


def state_of(table: OpenTable, who: CachingKey) -> str:
    holder = opens.holder_of(table, who)
    names = {state: name for name, state in STATES.items()}
    return "gone" if holder is None else names[holder.held]


def late(table: OpenTable, who: CachingKey) -> OpenTable:
    """Return the table after a holder's time has run out."""
    holder = opens.holder_of(table, who)
    assert isinstance(holder, CachingHolder)
    return opens.with_holder(table, oplocks.timed_out(holder))
