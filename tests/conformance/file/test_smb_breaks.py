"""The cache breaks of SMB clients by REST requests, over sockets of both. Source: smb.md 4.5.

Create, Lease and Rename are not in the documents: their rows are inferred. The same table is tested
on services in memory by tests/services/handles/test_handle_rest.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import pytest

from strongroom.semantics.file import accesses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.requests.create import CreateAnswer
from strongroom.wire.smb.requests.create_contexts import (
    LEASE,
    LeaseContext,
    chain,
    lease_data,
    write_chain,
)
from tests.conformance.running import Running
from tests.conformance.smb_shares import BothProtocols, is_refused, run
from tests.effort import pairs
from tests.servers.smb.messages import PLAIN
from tests.servers.smb.sockets import SmbMount
from tests.services.handle_calls import LEASES
from tests.services.handles.test_handle_rest import FLUSH_DELAY, ROWS, VIOLATION

KEY: Final = b"a lease of a key"
BY_LEASE: Final = 0xFF
# The server's clock is moved, and goes on by itself: a try that took longer proves nothing.
TRY_S: Final = 3.0
TRIES: Final = 30
ANSWERS: Final = ("in time", "late", "never")


@pytest.fixture(scope="module")
def both() -> Iterator[BothProtocols]:
    """A server for all tests of this module."""
    found = BothProtocols(Running(smb=True))
    yield found
    found.close()


async def leased(ann: SmbMount, state: str) -> CreateAnswer:
    """`f`, opened for reading with a lease."""
    wanted = LeaseContext(KEY, int(LEASES[state]), is_v2=True)
    contexts = write_chain([(LEASE, lease_data(wanted))])
    access, level = accesses.READ_DATA, BY_LEASE
    opened = await ann.open("f", chain=contexts, access=access, oplock_level=level)
    (granted,) = [data for name, data in chain(memoryview(opened.contexts)) if name == LEASE]
    assert int.from_bytes(granted[16:20], "little") == int(LEASES[state])
    return opened


async def timers_have_begun(ann: SmbMount) -> None:
    """The notice was sent before this is answered, and the waits began with it."""
    for _ in range(3):
        await ann.send(Command.ECHO, PLAIN)


async def refused_after_30_s(both: BothProtocols, ann: SmbMount, operation: str, share: str) -> int:
    """The request waits for 30 seconds, in vain, and holds up nobody else.

    Returns: how many of its looks at the clock are in doubt, since the machine was slow.
    """
    began = time.monotonic()
    work = asyncio.ensure_future(both.send(operation, share))
    await ann.has_notice.wait()
    await timers_have_begun(ann)
    await asyncio.to_thread(both.running.advance, 25)
    other = both.running.files()
    assert (await asyncio.to_thread(other.get, f"{share}?restype=share")).status == 200
    other.close()
    is_early = work.done()
    in_doubt = time.monotonic() - began > TRY_S
    assert in_doubt or not is_early
    await asyncio.to_thread(both.running.advance, 5.5)
    assert is_refused(await work, FLUSH_DELAY)
    return in_doubt or time.monotonic() - began > TRY_S


async def one_try(both: BothProtocols, row: tuple[str, str, str], answers: str) -> bool:
    """Returns: whether the try was fast enough to be one."""
    (operation, state, cell), share = row, both.new_share()
    how, _, left = cell.partition(" ")
    # An open handle is in the way of Delete File, whatever is cached.
    fails = operation == "Delete"
    async with both.mount(share, answers_breaks=answers == "in time") as ann:
        await leased(ann, state)
        if how != "wait" or answers == "in time":
            assert is_refused(await both.send(operation, share), VIOLATION) is fails
        else:
            in_doubt = await refused_after_30_s(both, ann, operation, share)
            if in_doubt:
                return False
            if answers == "late":
                await ann.acknowledge_lease(ann.notices[0])
            else:
                await asyncio.to_thread(both.running.advance, 10)
            assert is_refused(await both.send(operation, share), VIOLATION) is fails
        expected = [] if how == "none" else [int(LEASES[left])]
        # A notice that needs no answer may come after the answer of REST.
        await ann.send(Command.ECHO, PLAIN)
        assert [notice.new for notice in ann.notices] == expected
    return True


@pytest.mark.parametrize(("row", "answers"), list(pairs(ROWS, ANSWERS)))
def test_twelve_operations_and_three_kinds_of_holders(
    both: BothProtocols, row: tuple[str, str, str], answers: str
) -> None:
    """smb.md 4.5: a holder that acknowledges, one that does so too late, one that never does."""

    async def scenario() -> None:
        for _ in range(TRIES):
            if await one_try(both, row, answers):
                return
        raise AssertionError("the machine is too slow to try this")

    run(scenario())
