"""`GET files/opens`: who has a file open, with which locks and caches, and whom it is shown to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

import pytest
from msgspec.structs import replace

from strongroom.auth.accounts import Account
from strongroom.auth.roles import OPERATOR
from strongroom.config import OAuth, RolesSource
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.byte_ranges import LockTable, LockWait, RangeLock
from strongroom.servers.console.api.opens import LOCKS_MAX, OPENS_MAX, ShownFileOpens, ShownLock
from strongroom.servers.console.marks import OWN, Mark, inner, marks, shown
from strongroom.servers.console.open_files import document_of
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import RequestedDurability
from strongroom.services.file.handles.presenting import present_opens
from strongroom.services.file.opens.admission import enter, facts_of
from tests.auth import tokens
from tests.servers.console.served import API, BANK, SHOP, VERSION, Answer, ServedConsole, serving
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services.handle_calls import ALL, FULL, R, WaitingRequest, mounted
from tests.services.handles.test_handle_locks import lock

Item = TypeVar("Item")


async def read(on: Services, path: str) -> ShownFileOpens:
    return document_of(await present_opens(on, given.ACCOUNT, file_calls.SHARE, path))


def test_an_open_shows_its_access_what_it_shares_and_what_it_caches() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, ben = await mounted(on, "ann"), await mounted(on, "ben")
        await ann.mkdir("Folder")
        mine = await ann.create("Folder/Report", lease="one", wanted="RWH", share=R)
        found = await read(on, "folder/report")
        assert (found.path, found.is_directory, found.open_count) == ("Folder/Report", False, 1)
        (one,) = found.opens
        assert one.id == str(mine.id)
        assert (one.protocol, one.user, one.client) == ("SMB 3.1.1", given.ACCOUNT, ann.peer)
        assert one.access == ("Read", "Write", "Delete")
        assert one.access_mask == f"0x{FULL:08X}"
        assert one.share_mode == ("Read",)
        assert (one.caching_kind, one.caching) == ("lease", ("Read", "Write", "Handle"))
        assert not (one.is_breaking or one.is_durable or one.is_disconnected)
        assert one.opened_time is not None and one.opened_time.endswith("Z")
        assert (await read(on, "Folder")).is_directory
        ann.answers = False
        opening = asyncio.ensure_future(ben.handle("Folder/Report", accesses.READ_DATA))
        await ann.told.wait()
        assert (await read(on, "Folder/Report")).opens[0].is_breaking
        ann.answer(*ann.notices[0])
        other = await opening
        found = await read(on, "Folder/Report")
        assert [one.id for one in found.opens] == [str(mine.id), str(other.id)]
        assert found.opens[0].caching == ("Read", "Handle")
        assert found.opens[1].access == ("Read",)
        await ann.close(mine)
        await ben.close(other)
        assert (await read(on, "Folder/Report")).opens == ()

    given.run(scenario)


def test_locks_are_shown_with_their_opens_and_those_that_wait_behind() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, ben = await mounted(on, "ann"), await mounted(on, "ben")
        mine, other = await ann.create("f"), await ben.handle("f")
        await lock(on, mine, (1 << 63) + 1, 5)
        await lock(on, mine, 0, 10, shared=True)
        request = WaitingRequest()
        waiting = asyncio.ensure_future(lock(on, other, 3, 1, request=request))
        await request.has_waited.wait()
        found = await read(on, "f")
        assert found.lock_count == 3
        assert found.locks == (
            ShownLock(
                open_id=str(mine.id), offset=str((1 << 63) + 1), length="5", is_exclusive=True
            ),
            ShownLock(open_id=str(mine.id), offset="0", length="10"),
            ShownLock(
                open_id=str(other.id), offset="3", length="1", is_exclusive=True, is_waiting=True
            ),
        )
        await ann.close(mine)
        await waiting
        (left,) = (await read(on, "f")).locks
        assert (left.open_id, left.is_waiting) == (str(other.id), False)

    given.run(scenario)


def test_a_request_of_rest_under_way_is_shown_without_a_handle() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.create(on, "f", 10)
        found = await present_opens(on, given.ACCOUNT, file_calls.SHARE, "f")
        record = (await file_calls.look(on, "f")).record
        partition = (await (await mounted(on)).handle("f")).partition
        with await enter(on, partition, FileOperation.GET_FILE, facts_of(record)):
            shown_opens = (await read(on, "f")).opens
        assert found.table.entries == ()
        assert [(one.protocol, one.id) for one in shown_opens if not one.id] == [("REST", "")]
        assert [one.protocol for one in (await read(on, "f")).opens] == ["SMB 3.1.1"]

    given.run(scenario)


def test_a_durable_handle_is_shown_while_it_waits_for_its_client() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f", wanted="RWH", durable=RequestedDurability(b"1" * 16))
        (before,) = (await read(on, "f")).opens
        assert (before.caching_kind, before.is_durable) == ("oplock", True)
        assert not before.is_disconnected
        await ann.leave()
        (after,) = (await read(on, "f")).opens
        assert (after.id, after.protocol, after.user) == (str(handle.id), "SMB", given.ACCOUNT)
        assert after.is_disconnected

    given.run(scenario)


def test_a_file_that_is_to_be_deleted_says_so() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.create("f")
        await ann.dispose(handle)
        assert (await read(on, "f")).is_delete_pending
        await ann.close(handle)
        assert await given.refused(read(on, "f")) == (404, "ResourceNotFound")

    given.run(scenario)


def test_an_answer_has_a_limit_and_says_how_many_there_are() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handles = [await ann.create("f")]
        handles += [await ann.handle("f") for _ in range(OPENS_MAX)]
        for at in range(LOCKS_MAX + 1):
            await lock(on, handles[0], at, 1)
        found = await read(on, "f")
        assert (len(found.opens), found.open_count) == (OPENS_MAX, OPENS_MAX + 1)
        assert (len(found.locks), found.lock_count) == (LOCKS_MAX, LOCKS_MAX + 1)

    given.run(scenario)


class Counted(tuple[Item, ...], Generic[Item]):
    """A table's rows, which count how many of them were read."""

    read: int

    def __new__(cls, rows: Iterable[Item]) -> Self:
        made = super().__new__(cls, rows)
        made.read = 0
        return made

    def __iter__(self) -> Iterator[Item]:
        for one in super().__iter__():
            self.read += 1
            yield one

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found


def test_the_work_does_not_grow_with_locks_and_caches_that_are_not_shown() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, opened = await mounted(on), OPENS_MAX + 100
        await ann.close(await ann.create("f"))
        for number in range(opened):
            await ann.handle("f", lease=f"lease {number}", wanted="R", share=ALL)
        found = await present_opens(on, given.ACCOUNT, file_calls.SHARE, "f")
        held = Counted(RangeLock(at, 1, True, 1) for at in range(100_000))
        waiting = Counted(LockWait(at, held[at]) for at in range(1000))
        held.read, holders = 0, Counted(found.table.holders)
        assert len(holders) == opened
        table = replace(found.table, locks=LockTable(held, waiting), holders=holders)
        document = document_of(replace(found, table=table))
        assert (len(document.locks), document.lock_count) == (LOCKS_MAX, 101_000)
        assert (held.read, waiting.read) == (LOCKS_MAX, 0)
        assert {one.caching for one in document.opens} == {("Read",)}
        assert holders.read <= opened

    given.run(scenario)


def test_every_field_is_the_accounts_own() -> None:
    for kind in inner(ShownFileOpens):
        assert set(marks(kind).values()) == {OWN}
    document = ShownFileOpens(path="secret", locks=(ShownLock(open_id="secret"),))
    assert shown(document, frozenset(Mark) - {OWN}) == ShownFileOpens()


READER, OPERATING = "reader-of-one-share", "operator"
SHARE = "/shop/papers?restype=share"
FILE = {"x-ms-type": "file", "x-ms-content-length": "3"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """Two accounts, of which one has a share with a file; an operator, and a reader of files."""
    roles = tmp_path_factory.mktemp("roles") / "roles.json"
    reading = {"role": "Storage File Data Privileged Reader", "account": "shop"}
    assignments = [
        {"principal": OPERATING, "role": OPERATOR, "account": "bank"},
        {"principal": READER, **reading},
    ]
    roles.write_text(json.dumps({"assignments": assignments}))
    roles.chmod(0o600)
    more = {"oauth": OAuth(), "roles": RolesSource(roles, must_exist=True), "test_clock": True}
    with serving(SHOP, BANK, **more) as found:
        file = found.own("file")
        assert file.signed(SHARE, method="PUT", body=b"").status == 201
        made = file.signed("/shop/papers/A%20b.txt", method="PUT", body=b"", fields=FILE)
        assert made.status == 201
        yield found


def opens(served: ServedConsole, query: str, account: Account = SHOP) -> Answer:
    return served.api(f"files/opens?{query}", account)


def by_token(served: ServedConsole, principal: str, query: str) -> Answer:
    token = tokens.token(oid=principal, aud="https://storage.azure.com")
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    return served.ask(f"{API}files/opens?{query}", fields=fields)


def code_of(answer: Answer) -> tuple[int, Any]:
    return answer.status, answer.json()["error"]["code"]


def test_a_key_asks_for_files_and_directories_of_its_account(served: ServedConsole) -> None:
    for query, path, is_directory in (
        ("share=papers&path=a%20B.TXT", "A b.txt", False),
        ("share=papers", "", True),
        ("share=papers&path=", "", True),
    ):
        document = opens(served, query).json()
        assert (document["path"], document["is_directory"]) == (path, is_directory)
        assert (document["opens"], document["locks"], document["open_count"]) == ([], [], 0)


def test_a_lease_over_rest_is_shown_and_looking_changes_nothing(served: ServedConsole) -> None:
    file = served.own("file")
    made = file.signed("/shop/papers/leased", method="PUT", body=b"", fields=FILE)
    before = opens(served, "share=papers&path=leased").json()
    assert (before["lease_state"], before["lease_duration"]) == ("available", "")
    assert before["etag"] == made.headers["etag"]
    asked = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    target = "/shop/papers/leased?comp=lease"
    lease = file.signed(target, method="PUT", body=b"", fields=asked)
    assert lease.status == 201
    after = opens(served, "share=papers&path=leased").json()
    assert (after["lease_state"], after["lease_duration"]) == ("leased", "infinite")
    assert after["etag"] == before["etag"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("path=a", 400, "InvalidQuery"),
        ("share=papers&path=missing", 404, "ResourceNotFound"),
        ("share=papers&path=missing/a", 404, "ParentNotFound"),
        ("share=missing", 404, "ShareNotFound"),
        ("share=NO*NAME", 404, "ShareNotFound"),
        ("share=papers&path=a%3Ab", 400, "InvalidResourceName"),
        ("share=papers&path=..", 400, "InvalidResourceName"),
        ("share=papers&path=%2Fa", 400, "InvalidResourceName"),
        ("share=papers&depth=2", 400, "InvalidQuery"),
    ],
)
def test_mistakes_are_named(served: ServedConsole, query: str, status: int, code: str) -> None:
    assert code_of(opens(served, query)) == (status, code)


def test_nobody_else_learns_whether_there_is_such_a_file(served: ServedConsole) -> None:
    for query in ("share=papers&path=A%20b.txt", "share=missing&path=x"):
        assert code_of(opens(served, query, BANK)) == (404, "ShareNotFound")
        refused = by_token(served, READER, f"account=shop&{query}")
        assert (refused.status, refused.json()["error"]["needs"]) == (403, "account key")
        bare = served.ask(f"{API}files/opens?{query}")
        assert (bare.status, bare.json()["error"]["needs"]) == (401, "sign-in")
        sas = "sv=2021-12-02&ss=f&srt=sco&sp=rl&se=2099-01-01T00%3A00%3A00Z&sig=AAAA"
        by_sas = served.ask(f"{API}files/opens?{query}&{sas}")
        assert (by_sas.status, by_sas.json()["error"]["needs"]) == (403, "account key")
        for answer in (refused, bare, by_sas):
            assert b"papers" not in answer.body
            assert b"shop" not in answer.body


def test_an_operator_names_the_account(served: ServedConsole) -> None:
    found = by_token(served, OPERATING, "account=shop&share=papers&path=A%20b.txt")
    assert found.json()["path"] == "A b.txt"
    elsewhere = by_token(served, OPERATING, "account=bank&share=papers&path=A%20b.txt")
    assert code_of(elsewhere) == (404, "ShareNotFound")
