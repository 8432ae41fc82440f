"""One call of the engine is one statement, an update one to read and one to commit; and what comes
in one turn of the loop is one statement, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from strongroom.engines.base import Commit, Position, Record, Step
from strongroom.engines.links import Links
from strongroom.engines.postgres.sessions.session import DatabaseSession, StatementResult
from strongroom.engines.postgres.sql.schema import Statement
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import commit, face, hidden, increment, place, put
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

_TOGETHER: Final = 32
_LINKS: Final = Links(hidden=True, head=b">", id_bytes=2)

Call = Callable[[PostgresEngine], Awaitable[object]]


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    names: list[str] = []
    run = DatabaseSession.run

    async def counted(
        self: DatabaseSession, statement: Statement, *values: bytes | None
    ) -> StatementResult:
        names.append(statement.name)
        return await run(self, statement, *values)

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseSession, "run", counted)
        yield names


async def _read_together(store: PostgresEngine) -> None:
    await asyncio.gather(*(store.read([face(b"%d" % one)]) for one in range(_TOGETHER)))


async def _update_together(store: PostgresEngine) -> None:
    refs = [face(b"", b"%d" % one) for one in range(_TOGETHER)]
    assert await asyncio.gather(*(increment(store, ref) for ref in refs)) == [1] * _TOGETHER


async def _count_one(store: PostgresEngine) -> None:
    """All of them change one record: each sees what the one before wrote."""
    counts = await asyncio.gather(*(increment(store, face(b"hot")) for _ in range(_TOGETHER)))
    assert sorted(counts) == list(range(1, _TOGETHER + 1))


async def _refuse(store: PostgresEngine) -> None:
    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        raise KeyError

    with pytest.raises(KeyError):
        await store.update(place(), [face()], decide)


async def _open_short(store: PostgresEngine) -> None:
    (written,) = await store.contents.write_all([b"body"])
    await commit(store, Step(place(), adopt=(written.id,)))
    opened = await store.contents.open(written.id)
    assert await opened.read(0, 4) == b"body"


CALLS: Final[dict[str, tuple[Call, list[str]]]] = {
    "read": (lambda on: on.read([face(), hidden(), face(b"", b"q", b"j")]), ["read"]),
    "follow": (lambda on: on.follow(place(), _LINKS, b"00", [b"n"] * 250), ["follow"]),
    "read_range": (lambda on: on.read_range(place(), True, b"", None, 10), ["range"]),
    "scan": (lambda on: on.scan(b"k", Position(b"", b""), None, 10), ["scan"]),
    "now": (lambda on: on.now(), []),
    "an update that reads": (lambda on: increment(on, face()), ["read", "commit"]),
    "an update that reads nothing": (lambda on: put(on, (face(), b"")), ["commit"]),
    "a refusal": (_refuse, ["read"]),
    "bodies together": (lambda on: on.contents.write_all([b"a", b"b"]), ["write_contents"]),
    "a short body": (_open_short, ["write_contents", "commit", "open"]),
    "reads of a turn": (_read_together, ["read"]),
    "updates of a turn": (_update_together, ["read", "commit"]),
    "updates of one record": (_count_one, ["read", "commit"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_a_statement(
    name: str,
    postgres: PostgresServer,
    administrator: Administrator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, statements = CALLS[name]

    async def run() -> None:
        subject = PostgresSubject(postgres.url, administrator)
        await subject.start()
        try:
            with _counted(monkeypatch) as counted:
                await call(subject.gateway)
            assert counted == statements
        finally:
            await subject.stop()

    asyncio.run(run())
