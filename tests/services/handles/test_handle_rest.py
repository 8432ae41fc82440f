"""REST beside handles of SMB on services in memory: share modes, leases, breaks, as tables.

Source: smb.md 4.2, 4.3 and 4.5. Rows that its documents leave open are inferences, marked so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.operations.file import file
from strongroom.semantics.file import accesses, oplocks
from strongroom.semantics.file.accesses import Use
from strongroom.semantics.file.oplocks import Caching
from strongroom.services.core import timeouts
from strongroom.services.core.leasing import AcquireLease, BreakLease, ReleaseLease
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.rest.files import SetFileMetadata, SetFileProperties
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.file.test_file_renames import move
from tests.services.handle_calls import STAT, D, R, W, mounted
from tests.services.handles.test_handle_breaks import pass_time, waits

Send = Callable[[Services], Awaitable[Any]]
SHARES: Final = {
    "none": Use.NONE,
    "R": R,
    "W": W,
    "D": D,
    "R+W": R | W,
    "R+D": R | D,
    "W+D": W | D,
    "R+W+D": R | W | D,
}
ACQUIRE: Final = next(one for one in file.OPERATIONS if one.id == "file_acquire_lease")
ID: Final = "aaaaaaaa-0000-0000-0000-000000000000"
VIOLATION: Final = (409, "SharingViolation")


async def lease(on: Services) -> Any:
    return await file_calls.run(on, ACQUIRE, "f", AcquireLease(-1, ID))


async def set_properties(on: Services) -> Any:
    return await file_calls.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties())


async def set_metadata(on: Services) -> Any:
    return await file_calls.run(on, file.SET_FILE_METADATA, "f", SetFileMetadata())


async def get_metadata(on: Services) -> Any:
    return await file_calls.run(on, file.GET_FILE_METADATA, "f", OnPath())


SENDS: Final[dict[str, Send]] = {
    "Create": lambda on: file_calls.create(on, "f", 4),
    "Get": lambda on: file_calls.read(on, "f"),
    "SetProps": set_properties,
    "SetMeta": set_metadata,
    "Delete": lambda on: file_calls.delete(on, "f"),
    "PutRange": lambda on: file_calls.put(on, "f", 0, b"x"),
    "ListRanges": lambda on: file_calls.ranges(on, "f"),
    "Lease": lease,
}
# smb.md 4.2: x = SharingViolation.
TABLE: Final = """
    none   x x x x x x x x
    R      x . x x x x . x
    W      x x . . x . x x
    D      x x x x x x x x
    R+W    x . . . x . . x
    R+D    x . x x x x . x
    W+D    . x . . x . x x
    R+W+D  . . . . x . . .
"""
CELLS: Final = [
    (row.split()[0], operation, mark == "x")
    for row in TABLE.strip().splitlines()
    for operation, mark in zip(SENDS, row.split()[1:], strict=True)
]


async def is_refused(work: Awaitable[Any], answer: tuple[int, str] = VIOLATION) -> bool:
    """Return whether a call is refused with this answer; another error is raised."""
    try:
        await work
    except StorageError as error:
        if (error.row.status, error.row.code) != answer:
            raise
        return True
    return False


@pytest.mark.parametrize(("share", "operation", "fails"), CELLS)
def test_a_share_mode_fails_the_operations_that_it_denies(
    share: str, operation: str, fails: bool
) -> None:
    """smb.md 4.2. The handle only reads, except for Lease, which its access must not refuse."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on)
        handle = await ann.handle("f", accesses.READ_DATA, SHARES[share])
        assert await is_refused(SENDS[operation](on)) is fails
        await ann.close(handle)
        assert not await is_refused(SENDS[operation](on))
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


@pytest.mark.parametrize("operation", SENDS)
def test_a_handle_for_attributes_only_fails_delete_file_alone(operation: str) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on)
        await ann.handle("f", STAT, Use.NONE)
        assert await is_refused(SENDS[operation](on)) is (operation == "Delete")

    given.run(scenario)


EIGHT: Final = {
    name: sum(
        bit
        for use, bit in (
            (R, accesses.READ_DATA),
            (W, accesses.WRITE_DATA),
            (D, accesses.DELETE),
        )
        if use & share
    )
    | accesses.READ_ATTRIBUTES
    for name, share in SHARES.items()
}


@pytest.mark.parametrize("access", EIGHT)
@pytest.mark.parametrize("state", ["available", "leased", "released", "broken"])
def test_leases_of_rest_and_accesses_of_handles(access: str, state: str) -> None:
    """smb.md 4.3; R+D is an inference."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on)
        if state != "available":
            await lease(on)
        ends = {"released": ("file_release_lease", ReleaseLease()), "broken": _BREAK}
        if state in ends:
            name, wanted = ends[state]
            operation = next(one for one in file.OPERATIONS if one.id == name)
            await file_calls.run(on, operation, "f", wanted, lease_id=ID)
        is_change = bool(SHARES[access] & (W | D))
        opened = ann.open("f", EIGHT[access])
        expected = file_errors.STATUS_SHARING_VIOLATION
        refused = state == "leased" and is_change
        assert await do.status(opened) == (expected if refused else 0)
        if state == "available":
            assert await is_refused(lease(on)) is is_change

    given.run(scenario)


_BREAK: Final = ("file_break_lease", BreakLease(None))

READS: Final = "wait RH|none|wait R"
CHANGES: Final = "wait -|go -|wait -"
# smb.md 4.5: the caching that a holder of RWH, RH and RW has left. Create, Lease, Copy and Rename
# are not in the documents: they are inferred.
BREAKS: Final[dict[str, str]] = {
    "Get": READS,
    "GetProps": READS,
    "GetMeta": READS,
    "ListRanges": READS,
    "ListFiles": "none|none|none",
    "PutRange": CHANGES,
    "SetProps": CHANGES,
    "SetMeta": CHANGES,
    "Delete": "wait RW|wait R|none",
    "Create": CHANGES,
    "Lease": READS,
    "Rename": "wait RW|wait R|none",
}
MORE: Final[dict[str, Send]] = {
    **SENDS,
    "GetProps": lambda on: file_calls.look(on, "f"),
    "GetMeta": get_metadata,
    "ListFiles": lambda on: file_calls.names(on),
    "Rename": lambda on: move(on, "f", "g"),
}
HELD: Final = ("RWH", "RH", "RW")
ROWS: Final = [
    (operation, state, cell)
    for operation, cells in BREAKS.items()
    for state, cell in zip(HELD, cells.split("|"), strict=True)
]


@pytest.mark.parametrize("answers", ["in time", "late", "never"])
@pytest.mark.parametrize(("operation", "state", "cell"), ROWS)
def test_rest_breaks_the_caches_of_clients(
    operation: str, state: str, cell: str, answers: str
) -> None:
    """smb.md 4.5, with a holder that acknowledges, one that does so after 30 seconds, and one that
    never does."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on, answers=answers == "in time")
        # A lease is refused if a handle can write; its access does not matter to the others.
        access = accesses.READ_DATA
        opened = await ann.open("f", access, lease="a", wanted=state)
        assert opened.caching == do.LEASES[state]
        how, _, left = cell.partition(" ")
        # An open handle prevents Delete File, whatever is cached.
        fails = operation == "Delete"
        if how != "wait" or answers == "in time":
            assert await is_refused(MORE[operation](on)) is fails
        else:
            work = asyncio.ensure_future(is_refused(MORE[operation](on), FLUSH_DELAY))
            await waits(work, ann.told)
            await pass_time(on, 29.9)
            assert not work.done()
            # No other request is delayed.
            await file_calls.write(on, "other", b"text")
            await pass_time(on, 0.2)
            assert await work
            if answers == "late":
                ann.answer(*ann.notices[0])
            else:
                await pass_time(on, 5)
            assert await is_refused(MORE[operation](on)) is fails
        expected = [] if how == "none" else [do.LEASES[left]]
        assert [notice.to for _, notice in ann.notices] == expected
        await ann.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


FLUSH_DELAY: Final = (408, "ClientCacheFlushDelay")


@pytest.mark.parametrize("operation", ["Get", "GetProps", "PutRange", "Delete", "Rename"])
def test_a_shorter_timeout_of_the_request_ends_its_wait_with_the_same_answer(
    operation: str,
) -> None:
    """F-HDL-04; smb.md 4.5: a request waits for min(its timeout, 30 s)."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on, answers=False)
        await ann.open("f", accesses.READ_DATA, lease="a", wanted="RWH")
        codes = []
        for limit_s in (0.05, 0.5, 5, 50):
            # A busy machine may take long until the request waits.
            with pytest.raises(StorageError) as late:
                await timeouts.with_timeout(MORE[operation](on), limit_s)
            codes.append((late.value.row.status, late.value.row.code))
            if codes[-1] == FLUSH_DELAY:
                break
        assert codes[-1] == FLUSH_DELAY
        assert set(codes[:-1]) <= {(500, "OperationTimedOut")}
        # It has left no state behind that would delay others.
        await ann.leave()
        await MORE[operation](on)

    given.run(scenario)


@pytest.mark.parametrize("operation", ["Create", "Get", "PutRange"])
def test_a_holder_that_closes_at_the_notice_is_no_violation(operation: str) -> None:
    """smb.md 4.5: Handle is broken first, and then the share modes are checked again."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on, answers=False)
        kept = await ann.open(
            "f", accesses.READ_DATA | accesses.WRITE_DATA, Use.NONE, lease="a", wanted="RWH"
        )
        work = asyncio.ensure_future(is_refused(SENDS[operation](on)))
        await waits(work, ann.told)
        assert ann.notices[0][1].to == oplocks.RW
        await ann.close(kept.handle)
        assert not await work

    given.run(scenario)


async def content(on: Services) -> int:
    return len(await file_calls.read(on, "f"))


async def length(on: Services) -> int:
    return (await file_calls.look(on, "f")).record.size_bytes


def test_what_the_holder_writes_at_the_notice_is_what_rest_reads() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"old")
        ann = await mounted(on, answers=False)
        opened = await ann.open("f", lease="a", wanted="RW")
        for read in (content, length):
            ann.told.clear()
            work = asyncio.ensure_future(read(on))
            await waits(work, ann.told)
            text = b"new" * len(ann.notices)
            await ann.write(opened.handle, 0, text)
            ann.answer(*ann.notices[-1])
            assert await work == len(text)
            await ann.close(opened.handle)
            opened = await ann.open("f", lease="b", wanted="RW")
            assert opened.caching == oplocks.RW

    given.run(scenario)


def test_a_read_only_file_and_a_pending_one_over_rest() -> None:
    """smb.md 4.4."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        made = await ann.create("f", attributes=1)
        await ann.write(made, 0, b"text")
        await ann.close(made)
        for operation in ("Create", "SetProps", "SetMeta", "PutRange", "Delete"):
            assert await is_refused(SENDS[operation](on), (412, "ReadOnlyAttribute")), operation
        clear = SetFileProperties(smb=SmbProperties(attributes="None"))
        await file_calls.run(on, file.SET_FILE_PROPERTIES, "f", clear)
        pending = await ann.handle("f")
        await ann.dispose(pending)
        for operation, send in MORE.items():
            if operation != "ListFiles":
                assert await is_refused(send(on), (409, "SMBDeletePending")), operation
        assert await file_calls.names(on) == []
        await ann.close(pending)
        assert await given.refused(get_metadata(on)) == (404, "ResourceNotFound")

    given.run(scenario)


def test_an_oplock_of_level_two_ends_with_a_write_over_rest_and_nobody_waits() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on, answers=False)
        opened = await ann.open("f", wanted=oplocks.R)
        assert opened.caching == oplocks.R
        await file_calls.put(on, "f", 0, b"x")
        ((_, notice),) = ann.notices
        assert notice.to == Caching.NONE and not notice.needs_answer

    given.run(scenario)
