"""Accounts and roles that are served from a store, as they change there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from strongroom.auth.accounts import Account, AccountsError, development_account
from strongroom.auth.roles import Assignment, Assignments
from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Key, Partition, Step, Unavailable, Write
from strongroom.engines.memory import MemoryEngine
from strongroom.servers.identities import stored_rows
from strongroom.servers.identities.accounts_file import ServedAccounts, change_stored_accounts
from strongroom.servers.identities.roles_file import ServedRoles, change_stored_roles
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.services.identities import StoreIdentities
from strongroom.store.core import keys

T = TypeVar("T")

ONE, TWO = Account("one", (b"1",)), Account("two", (b"2", b"3"))
DEVELOPMENT = development_account()
ROLE = Assignment("someone", "Storage Blob Data Reader", "one")
OTHER = Assignment("someone", "Storage Queue Data Reader", "one", "box")


class Kept:
    """A store, and what a gateway has read of it."""

    def __init__(self) -> None:
        self.engine = MemoryEngine(ManualClock())
        self.store = StoreIdentities(self.engine)
        self.read = StoredIdentities(self.store, "the place")

    async def put(self, *accounts: Account) -> None:
        await change_stored_accounts(self.store, lambda _: accounts)
        await self.read.read()

    async def assign(self, *roles: Assignment) -> None:
        await change_stored_roles(self.store, lambda _: roles)
        await self.read.read()

    async def write(self, partition: Partition, name: str, row: bytes | None) -> None:
        """Write a row as no command of this program does."""
        mark = Write(keys.IDENTITIES_CHANGED, b"\1")
        value = None if row is None else b"\1" + row
        step = Step(partition, (mark, Write(Key(False, name.encode()), value)))
        await self.engine.update(partition, (), lambda records, stamp: Commit(None, (step,)))
        await self.read.read()

    def served(self, *fixed: Account, refused: Account | None = None) -> ServedAccounts:
        def admit(accounts: tuple[Account, ...]) -> None:
            if refused in accounts:
                raise AccountsError("not that one")

        return ServedAccounts(fixed, None, DEVELOPMENT, admit, rows=self.read.accounts)


def run(test: Callable[[Kept], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(test(Kept()), 30)

    return asyncio.run(bounded())


def names(accounts: Sequence[Account]) -> list[str]:
    return [one.name for one in accounts]


def test_accounts_are_served_as_they_change() -> None:
    async def test(kept: Kept) -> None:
        served = kept.served()
        assert served.is_fallback
        assert served.get(DEVELOPMENT.name) == DEVELOPMENT
        assert served.source_of(DEVELOPMENT.name) == "development"
        await kept.put(ONE)
        assert (served.get("one"), served.get(DEVELOPMENT.name)) == (ONE, None)
        assert served.source_of("one") == "store"
        await kept.put(ONE.rotated(b"new"), TWO)
        assert served.get("one") == ONE.rotated(b"new")
        await kept.put(TWO)
        assert served.get("one") is None
        assert names(served.all()) == ["two"]
        assert not kept.served().is_fallback

    run(test)


def test_fixed_accounts_stay_beside_those_of_the_store() -> None:
    async def test(kept: Kept) -> None:
        await kept.put(TWO)
        served = kept.served(ONE)
        assert names(served.all()) == ["one", "two"]
        assert (served.source_of("one"), served.source_of("two")) == ("start", "store")
        with pytest.raises(AccountsError, match=r"the accounts in the place: account 'two'"):
            kept.served(TWO)

    run(test)


def test_a_row_that_breaks_changes_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(kept: Kept) -> None:
        await kept.put(ONE)
        served = kept.served()
        await kept.write(keys.ACCOUNTS, "two", b'{"name":"two","keys":["c2VjcmV0","!!"]}')
        assert [served.get("one") for _ in range(3)] == [ONE] * 3
        assert served.get("two") is None
        (line,) = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
        assert line.startswith("the accounts in the place are not used, what they said before")
        assert "'two'" in line and "c2VjcmV0" not in line
        with pytest.raises(AccountsError, match="two"):
            await change_stored_accounts(kept.store, lambda found: (*found, TWO))
        await kept.write(keys.ACCOUNTS, "two", None)
        await kept.put(TWO)
        assert (served.get("one"), served.get("two")) == (None, TWO)

    run(test)


@pytest.mark.parametrize(
    "row", [b"", b"{}", b"\xff", b"[" * 9000, b'{"name":"one","keys":["MQ=="]}']
)
def test_rows_that_are_no_account_of_their_name_are_refused(row: bytes) -> None:
    async def test(kept: Kept) -> None:
        await kept.write(keys.ACCOUNTS, "two", row)
        with pytest.raises(AccountsError):
            kept.served()

    run(test)


def test_what_may_not_be_served_is_not_taken_over() -> None:
    async def test(kept: Kept) -> None:
        await kept.put(ONE)
        served = kept.served(refused=TWO)
        await kept.put(ONE, TWO)
        assert names(served.all()) == ["one"]
        assert (served.get("one"), served.get("two")) == (ONE, None)
        with pytest.raises(AccountsError, match="not that one"):
            kept.served(refused=TWO)

    run(test)


def test_rows_that_all_go_do_not_open_the_server_to_the_known_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(kept: Kept) -> None:
        await kept.put(ONE)
        served = kept.served()
        await kept.put()
        assert (served.get("one"), served.get(DEVELOPMENT.name)) == (ONE, None)
        assert "are gone" in caplog.text

    run(test)


def test_roles_are_found_as_they_change_and_without_any_nobody_may_do_everything() -> None:
    async def test(kept: Kept) -> None:
        served = ServedRoles(None, open_without=True, rows=kept.read.roles)
        assert served.is_open
        assert len(served.of(("someone",), "one")) > 2
        await kept.assign(ROLE, OTHER)
        assert set(served.of(("someone",), "one")) == {ROLE, OTHER}
        assert served.of(("someone",), "two") == ()
        await kept.assign(OTHER)
        assert served.all() == (OTHER,)
        await kept.write(keys.ROLES, "other", b"{}")
        assert served.of(("someone",), "one") == (OTHER,)
        await kept.write(keys.ROLES, "other", None)
        await kept.assign()
        assert (served.all(), served.is_open) == ((), False)

    run(test)


def test_a_long_account_and_thousands_of_roles_come_back() -> None:
    async def test(kept: Kept) -> None:
        long = Account("long", (bytes(200_000),))
        await kept.put(ONE, long)
        assert kept.served().get("long") == long
        many: Assignments = tuple(
            Assignment(f"user{at}", ROLE.role, "one", f"box-{at}") for at in range(3000)
        )
        await kept.assign(*many)
        assert set(ServedRoles(None, rows=kept.read.roles).all()) == set(many)

    run(test)


def test_a_store_that_cannot_be_read_is_told_once_and_read_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rows, "POLL_S", 0.001)

    async def test(kept: Kept) -> None:
        await kept.put(ONE)
        served = kept.served()
        following = asyncio.create_task(kept.read.follow())
        failed = asyncio.Event()
        read, failures = kept.engine.read, list[int]()

        async def away(*given: object) -> list[None]:
            failures.append(1)
            if len(failures) > 5:
                failed.set()
            raise Unavailable("the database is away")

        with monkeypatch.context() as patched:
            patched.setattr(kept.engine, "read", away)
            await failed.wait()
            assert served.get("one") == ONE
        assert kept.engine.read == read
        await change_stored_accounts(kept.store, lambda _: (TWO,))
        for _ in range(5000):
            if served.get("one") is None:
                break
            await asyncio.sleep(0.001)
        assert served.get("two") == TWO
        assert caplog.text.count("the database is away") == 1
        following.cancel()

    run(test)
