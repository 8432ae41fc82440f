"""Changes of bytes and attributes that are cut off, or that come while another one is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strongroom.operations.file import file
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import information, transfers
from strongroom.services.file.handles.model import Handle, RequestedAttributes
from strongroom.services.file.rest.files import SetFileProperties
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import Mount, WaitingRequest, mounted
from tests.services.handles.test_handle_watches import asked, shown
from tests.services.handles.test_interrupted_names import SlowCommits
from tests.services.service_engine import settle

PERMISSION = "O:BAG:BAD:(A;;FA;;;BA)"
HIDDEN = RequestedAttributes(attributes=int(Attribute.HIDDEN))
Change = Callable[[Services, Mount, Handle], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "write": lambda on, ann, one: ann.write(one, 0, b"x"),
    "zeros": lambda on, ann, one: transfers.zero_data(on, one, 0, 2, WaitingRequest()),
    "length": lambda on, ann, one: information.set_end_of_file(on, one, 1, WaitingRequest()),
    "allocation": lambda on, ann, one: information.set_allocation(on, one, 1, WaitingRequest()),
    "attributes": lambda on, ann, one: information.set_basic(on, one, HIDDEN),
    "security": lambda on, ann, one: information.set_security(
        on, one, lambda _: PERMISSION, WaitingRequest()
    ),
    "overwrite": lambda on, ann, one: ann.open("f", disposition=Disposition.OVERWRITE),
    "range by REST": lambda on, ann, one: file_calls.put(on, "f", 0, b"abc"),
    "properties by REST": lambda on, ann, one: file_calls.run(
        on, file.SET_FILE_PROPERTIES, "f", SetFileProperties()
    ),
    "length by REST": lambda on, ann, one: file_calls.run(
        on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=1)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_whose_request_is_cut_off_is_told(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """smb.md 2.9: it has happened, so who watches must look."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        await file_calls.create(on, "f", 3)
        one, root = await ann.handle("f"), await ann.handle("")
        watching = await asked(on, root)
        with monkeypatch.context() as patched:
            slow = SlowCommits(on, patched)
            changing = asyncio.ensure_future(CHANGES[change](on, ann, one))
            await slow.has_come.wait()
            changing.cancel()
            await settle()
            slow.may_go.set()
            with pytest.raises(asyncio.CancelledError):
                await changing
        await settle()
        assert watching.done()
        assert shown(await watching) == ["3 f"]
        await ann.leave()
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_parts_of_a_security_descriptor_that_are_set_at_the_same_time_are_all_kept() -> None:
    """smb.md 2.11: each request sets its parts in the descriptor that is there."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one = await ann.create("f", permission=PERMISSION)
        other = await bob.handle("f")
        entries = ("(A;;FR;;;BU)", "(A;;FR;;;AU)")

        async def add(handle: Handle, entry: str) -> None:
            request = WaitingRequest()
            await information.set_security(on, handle, lambda text: text + entry, request)

        await asyncio.gather(add(one, entries[0]), add(other, entries[1]))
        text = await information.security(on, one)
        assert all(entry in text for entry in entries)

    given.run(scenario)
