"""Many clients of REST and SMB on one file: histories, a model of opens, failures between steps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strongroom.engines.base import CommitUnknown, EngineError, Unavailable
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import renaming
from strongroom.services.file.handles.model import Handle, RequestedRename
from strongroom.services.file.opens.opens import Opens
from strongroom.services.sweeper import Sweeper
from strongroom.testing.history import UNKNOWN, CompletedCall, History, check
from tests.effort import scaled
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import ALL, D, Mount, R, W, WaitingRequest, mounted
from tests.services.service_engine import ServiceEngine

VIOLATION = file_errors.STATUS_SHARING_VIOLATION
PENDING = file_errors.STATUS_DELETE_PENDING
NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
SIZE = 8


@dataclass(frozen=True)
class Wrote:
    """A client writes a number."""

    number: int


@dataclass(frozen=True)
class Looked:
    """A client reads it; the result is the number."""


class Register:
    """A file with one number: a read returns the number that was written last."""

    def initial(self, object_key: str) -> int:
        return 0

    def step(self, state: int, call: Hashable, result: Hashable) -> Iterable[int]:
        if isinstance(call, Wrote):
            return [call.number]
        return [state] if result in (state, UNKNOWN) else []

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        return isinstance(call, Looked)

    def version(self, state: int) -> Hashable | None:
        return None

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        return operations


def text(number: int) -> bytes:
    return str(number).rjust(SIZE).encode()


async def history(seed: int, steps: int) -> None:
    """Let clients of REST and of SMB, with and without caches, read and write one number."""
    chance, on = random.Random(seed), await file_calls.services()
    await file_calls.write(on, "f", text(0))
    record, last = History(), 0
    exclusive: set[int] = set()

    async def rest(client: int) -> None:
        nonlocal last
        for _ in range(steps):
            await _pause(chance)
            if chance.randrange(2):
                last += 1
                number = last
                seen = record.invoke(f"rest {client}", "f", Wrote(number))
                await _until_shared(partial(file_calls.put, on, "f", 0, text(number)))
                seen.returned(None)
            else:
                seen = record.invoke(f"rest {client}", "f", Looked())
                found = await _until_shared(lambda: file_calls.read(on, "f"))
                seen.returned(int(found))

    async def smb(client: int) -> None:
        nonlocal last
        mount = await mounted(on, f"client {client}")
        for _ in range(steps):
            await _pause(chance)
            share = chance.choice((ALL, ALL, Use.NONE))
            lease = chance.choice((None, f"{client}"))
            wanted = chance.choice(("RWH", "RW", "R"))
            opened = await _until_shared(
                partial(mount.open, "f", share=share, lease=lease, wanted=wanted)
            )
            if share is Use.NONE:
                exclusive.add(client)
                assert exclusive == {client}, "two have the file to themselves"
            for _ in range(chance.randrange(3)):
                await _pause(chance)
                if chance.randrange(2):
                    last += 1
                    seen = record.invoke(f"smb {client}", "f", Wrote(last))
                    await mount.write(opened.handle, 0, text(last))
                    seen.returned(None)
                else:
                    seen = record.invoke(f"smb {client}", "f", Looked())
                    seen.returned(int(await mount.read(opened.handle, 0, SIZE)))
            exclusive.discard(client)
            await mount.close(opened.handle)

    await asyncio.gather(*(rest(number) for number in range(2)), *(smb(n) for n in range(3)))
    verdict = check(record, Register())
    assert verdict.linearizable, verdict
    assert do.nothing_is_left(on)


async def _pause(chance: random.Random) -> None:
    for _ in range(chance.randrange(6)):
        await asyncio.sleep(0)


async def _until_shared(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of an attempt once no share mode denies it any more."""
    while True:
        try:
            return await attempt()
        except StorageError as error:
            if error.row is not file_errors.SHARING_VIOLATION:
                raise
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(scaled(120)))
def test_histories_of_both_protocols_are_linearizable(seed: int) -> None:
    given.run(lambda: history(seed, 6))


class Opening(RuleBasedStateMachine):
    """Opens, closes and dispositions of two names by several clients, compared with a plain
    model."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.on = self.run(file_calls.services())
        self.mounts = [self.run(mounted(self.on, f"client {number}")) for number in range(3)]
        self.files: dict[str, Known] = {}

    def run(self, work: Awaitable[Any]) -> Any:
        async def bounded() -> Any:
            return await asyncio.wait_for(work, 60)

        return self.loop.run_until_complete(bounded())

    def teardown(self) -> None:
        for mount in self.mounts:
            self.run(mount.leave())
        assert do.nothing_is_left(self.on)
        assert file_calls.problems(self.on) == []
        self.loop.close()

    @rule(
        client=st.integers(0, 2),
        name=st.sampled_from("fg"),
        uses=st.sampled_from([R, W, D, R | W, R | W | D, Use.NONE]),
        share=st.sampled_from([ALL, ALL, ALL, R, R | W, Use.NONE]),
        disposition=st.sampled_from([Disposition.OPEN, Disposition.CREATE, Disposition.OPEN_IF]),
        on_close=st.booleans(),
    )
    def open(
        self,
        client: int,
        name: str,
        uses: Use,
        share: Use,
        disposition: Disposition,
        on_close: bool,
    ) -> None:
        known, mount = self.files.get(name), self.mounts[client]
        on_close = on_close and bool(uses & D)
        expected = 0
        if known is None and disposition is Disposition.OPEN:
            expected = NOT_FOUND
        elif known is not None and known.pending:
            expected = PENDING
        elif known is not None and disposition is Disposition.CREATE:
            expected = file_errors.STATUS_OBJECT_NAME_COLLISION
        elif known is not None and known.conflicts(uses, share):
            expected = VIOLATION
        found: list[Handle] = []

        async def opening() -> None:
            rights = {R: accesses.READ_DATA, W: accesses.WRITE_DATA, D: accesses.DELETE}
            access = accesses.READ_ATTRIBUTES | sum(rights[use] for use in rights if use & uses)
            found.append(
                await mount.handle(name, access, share, disposition, deletes_on_close=on_close)
            )

        assert self.run(do.status(opening())) == expected
        if not expected:
            known = self.files.setdefault(name, Known())
            known.opens[found[0].id] = (mount, found[0], uses, share, on_close)

    @precondition(lambda self: any(known.opens for known in self.files.values()))
    @rule(pick=st.integers(0, 50), by=st.sampled_from(["close", "leave"]))
    def close(self, pick: int, by: str) -> None:
        mount, handle = self._picked(pick)
        gone = [handle.id]
        if by == "leave":
            gone = [
                one
                for known in self.files.values()
                for one, (other, *_) in known.opens.items()
                if other is mount
            ]
            self.run(mount.leave())
            mount.alive = True
        else:
            self.run(mount.close(handle))
        for name, known in list(self.files.items()):
            for one in gone:
                if one in known.opens:
                    known.pending |= known.opens.pop(one)[4]
            if known.pending and not known.opens:
                del self.files[name]

    def _picked(self, pick: int) -> tuple[Mount, Handle]:
        opens = [one for known in self.files.values() for one in known.opens.values()]
        mount, handle, *_ = opens[pick % len(opens)]
        return mount, handle

    @precondition(lambda self: any(known.opens for known in self.files.values()))
    @rule(pick=st.integers(0, 50), delete=st.booleans())
    def dispose(self, pick: int, delete: bool) -> None:
        mount, handle = self._picked(pick)
        known = self.files[handle.path[0]]
        may = bool(known.opens[handle.id][2] & D)
        found = self.run(do.status(mount.dispose(handle, delete=delete)))
        assert found == (0 if may else file_errors.STATUS_ACCESS_DENIED)
        if may:
            known.pending = delete

    @rule(name=st.sampled_from("fg"))
    def delete_over_rest(self, name: str) -> None:
        known = self.files.get(name)
        expected = (0, "")
        if known is None:
            expected = (404, "ResourceNotFound")
        elif known.pending:
            expected = (409, "SMBDeletePending")
        elif known.opens:
            expected = (409, "SharingViolation")
        if expected == (0, ""):
            self.run(file_calls.delete(self.on, name))
            del self.files[name]
        else:
            assert self.run(given.refused(file_calls.delete(self.on, name))) == expected

    @invariant()
    def rest_lists_what_is_not_pending(self) -> None:
        there = sorted(name for name, known in self.files.items() if not known.pending)
        assert self.run(file_calls.names(self.on)) == there
        handles = {one for known in self.files.values() for one in known.opens}
        assert set(self.on.held.of(Opens).handles) == handles


@dataclass
class Known:
    """The model's state of a file: its opens, and whether it is to be deleted."""

    pending: bool = False
    opens: dict[int, tuple[Mount, Handle, Use, Use, bool]] = field(default_factory=dict)

    def conflicts(self, uses: Use, share: Use) -> bool:
        if not uses:
            return False
        return any(
            other and (uses & ~others_share or other & ~share)
            for _, _, other, others_share, _ in self.opens.values()
        )


TestOpening = Opening.TestCase


async def whole(mount: Mount) -> None:
    """Run one of each operation that commits."""
    one = await mount.create("f", share=Use.NONE)
    await mount.write(one, 0, b"text")
    wanted = RequestedRename(("g",))
    await renaming.rename(mount.on, one, wanted, WaitingRequest())
    await mount.close(one)
    other = await mount.handle("g", disposition=Disposition.OVERWRITE)
    await mount.dispose(other)
    await mount.close(other)


class Failing:
    """The n-th call of the store fails, as in a short outage."""

    def __init__(self, on: Services, name: str, at: int) -> None:
        self.calls = 0
        self._real = getattr(on.store, name)
        self._at = at
        setattr(on.store, name, self.call)

    def done(self) -> bool:
        """Fail no more. Return whether a call has failed."""
        has_failed, self._at = self.calls >= self._at, 0
        return has_failed

    async def call(self, *args: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self._at:
            raise Unavailable("cut off")
        return await self._real(*args, **more)


@pytest.mark.parametrize("name", ["update", "read"])
def test_a_failure_at_any_step_leaves_no_open_behind(name: str) -> None:
    async def scenario() -> None:
        at = 1
        while True:
            on = await file_calls.services()
            ann = await mounted(on, "ann")
            failing = Failing(on, name, at)
            failed = False
            try:
                await whole(ann)
            except EngineError:
                failed = True
            await ann.leave()
            await on.held.of(Opens).tasks.wait()
            is_over = not failing.done()
            assert do.nothing_is_left(on), at
            bob = await mounted(on, "bob")
            for path in ("f", "g"):
                opened = await bob.open(path, share=Use.NONE, disposition=Disposition.OPEN_IF)
                await bob.close(opened.handle)
            assert file_calls.problems(on) == []
            if is_over:
                assert not failed and at > 5
                return
            at += 1

    given.run(scenario)


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("commit", range(1, 6))
def test_a_crash_inside_any_commit_keeps_names_and_files_together(commit: int, steps: int) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        store, real, calls = on.store, on.store.update, 0
        assert isinstance(store, ServiceEngine)

        async def update(*args: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == commit:
                store.cut_after_steps(steps)
            return await real(*args, **more)

        store.update = update  # type: ignore[method-assign]  # a double
        ann = await mounted(on, "ann")
        with pytest.raises(CommitUnknown):
            await whole(ann)
        after = given.services(store.restarted())
        assert not after.held.of(Opens).handles
        bob = await mounted(after, "bob")
        for name in await file_calls.names(after):
            assert await bob.read(await bob.handle(name), 0, 0) == b""
        await bob.leave()
        after.store.advance(1)
        await Sweeper(after).run_once()
        assert file_calls.problems(after) == []

    given.run(scenario)
