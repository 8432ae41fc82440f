"""Share modes and leases between the protocols, over sockets of both. Source: smb.md 4.2, 4.3.

The same tables are tested on services in memory by tests/services/handles/test_handle_rest.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strongroom.errors.file import STATUS_SHARING_VIOLATION
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Use
from strongroom.servers.smb.refusals import SmbError
from tests.conformance.answer import expect
from tests.conformance.running import Running
from tests.conformance.smb_shares import (
    FILE,
    LEASE_ID,
    SENDS,
    BothProtocols,
    Send,
    is_refused,
    run,
)
from tests.services.handles.test_handle_rest import CELLS, EIGHT, SHARES

VIOLATION = (409, "SharingViolation")
ENDS = {
    "released": {"x-ms-lease-action": "release", "x-ms-lease-id": LEASE_ID},
    "broken": {"x-ms-lease-action": "break"},
}


@pytest.fixture(scope="module")
def both() -> Iterator[BothProtocols]:
    """A server for all tests of this module."""
    found = BothProtocols(Running(smb=True))
    yield found
    found.close()


@pytest.mark.parametrize(("share_mode", "operation", "fails"), CELLS)
def test_eight_share_modes_and_eight_operations(
    both: BothProtocols, share_mode: str, operation: str, fails: bool
) -> None:
    """smb.md 4.2. The open only reads, so that its access conflicts with no operation."""

    async def scenario() -> None:
        share = both.new_share()
        async with both.mount(share) as ann:
            opened = await ann.open("f", access=accesses.READ_DATA, share=int(SHARES[share_mode]))
            assert is_refused(await both.send(operation, share), VIOLATION) is fails
            await ann.close(opened.file_id)
            assert not is_refused(await both.send(operation, share), VIOLATION)

    run(scenario())


@pytest.mark.parametrize("access", EIGHT)
@pytest.mark.parametrize("state", ["available", "leased", "released", "broken"])
def test_eight_accesses_and_the_states_of_a_lease(
    both: BothProtocols, access: str, state: str
) -> None:
    """smb.md 4.3: while REST holds a lease, only opens that do not change the file succeed."""

    async def scenario() -> None:
        share, is_change = both.new_share(), bool(SHARES[access] & (Use.WRITE | Use.DELETE))
        if state != "available":
            expect(await both.send("Lease", share), 201)
        if state in ENDS:
            ended = both.rest.put(f"{share}/f?comp=lease", ENDS[state])
            assert ended.status in (200, 202), ended
        async with both.mount(share) as ann:
            status = 0
            try:
                await ann.open("f", access=EIGHT[access], share=7)
            except SmbError as refused:
                status = refused.status
            stops = state == "leased" and is_change
            assert status == (STATUS_SHARING_VIOLATION if stops else 0)
            if state == "available":
                assert is_refused(await both.send("Lease", share), VIOLATION) is is_change

    run(scenario())


PENDING = (409, "SMBDeletePending")
ON_DIRECTORIES: dict[str, Send] = {
    "Create": lambda rest, share: rest.put(f"{share}/d?restype=directory"),
    "Delete": lambda rest, share: rest.delete(f"{share}/d?restype=directory"),
    "GetProps": lambda rest, share: rest.head(f"{share}/d?restype=directory"),
    "SetProps": lambda rest, share: rest.put(f"{share}/d?restype=directory&comp=properties"),
    "SetMeta": lambda rest, share: rest.put(f"{share}/d?restype=directory&comp=metadata"),
    "GetMeta": lambda rest, share: rest.get(f"{share}/d?restype=directory&comp=metadata"),
    "CreateBelow": lambda rest, share: rest.put(f"{share}/d/below", FILE),
    "MakeBelow": lambda rest, share: rest.put(f"{share}/d/below?restype=directory"),
    "RenameInto": lambda rest, share: rest.put(
        f"{share}/d/below?comp=rename", {"x-ms-file-rename-source": f"{rest.url}{share}/f"}
    ),
    "CopyInto": lambda rest, share: rest.put(
        f"{share}/d/below", {"x-ms-copy-source": f"{rest.url}{share}/f"}
    ),
    "Rename": lambda rest, share: rest.put(
        f"{share}/e?restype=directory&comp=rename",
        {"x-ms-file-rename-source": f"{rest.url}{share}/d"},
    ),
}


@pytest.mark.parametrize("operation", [one for one in SENDS if one != "ListFiles"])
def test_each_operation_on_a_file_that_smb_deletes_is_refused(
    both: BothProtocols, operation: str
) -> None:
    """smb.md 4.4: never 404 while an open is left, and a listing does not show the file."""

    async def scenario() -> None:
        share = both.new_share()
        async with both.mount(share) as ann:
            opened = await ann.open("f", share=7)
            await ann.dispose(opened.file_id)
            assert is_refused(await both.send(operation, share), PENDING)
            assert b"<Name>f<" not in (await both.send("ListFiles", share)).body
            await ann.close(opened.file_id)
            assert (await both.send("GetProps", share)).status == 404

    run(scenario())


@pytest.mark.parametrize("operation", ON_DIRECTORIES)
def test_each_operation_on_a_directory_that_smb_deletes_is_refused(
    both: BothProtocols, operation: str
) -> None:
    """smb.md 4.4. A directory that is being deleted takes no new names either."""

    async def scenario() -> None:
        share = both.new_share()
        expect(ON_DIRECTORIES["Create"](both.rest, share), 201)
        async with both.mount(share) as ann:
            opened = await ann.open("d", share=7, options=1)
            await ann.dispose(opened.file_id)
            answer = await asyncio.to_thread(ON_DIRECTORIES[operation], both.rest, share)
            assert is_refused(answer, PENDING)

    run(scenario())


def test_a_directory_that_smb_has_open_is_not_deleted(both: BothProtocols) -> None:
    async def scenario() -> None:
        share, delete = both.new_share(), ON_DIRECTORIES["Delete"]
        expect(ON_DIRECTORIES["Create"](both.rest, share), 201)
        async with both.mount(share) as ann:
            opened = await ann.open("d", share=7, options=1, access=accesses.READ_DATA)
            assert is_refused(await asyncio.to_thread(delete, both.rest, share), VIOLATION)
            await ann.close(opened.file_id)
            assert (await asyncio.to_thread(delete, both.rest, share)).status == 202

    run(scenario())
