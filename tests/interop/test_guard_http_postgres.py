"""The middleware's memory in a real PostgreSQL, shared by two servers and by the data's guard."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strongroom.coordination.guards import FencedOut, Guards, Token
from strongroom.coordination.guards.keepers import SqlKeeper
from tests.coordination.servers import postgres_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    server = postgres_server(folder)
    yield f"postgresql://postgres@{server.address}/postgres"
    server.stop()


def test_two_servers_share_the_highest_fence(url: str) -> None:
    keepers = [SqlKeeper(lambda: psycopg.connect(url)) for _ in range(2)]
    for keeper in keepers:
        keeper.create_table()
    assert keepers[0].admit("a", 7) == 7
    assert keepers[1].admit("a", 6) == 7
    assert keepers[1].admit("a", 8) == 8
    with psycopg.connect(url) as connection, pytest.raises(FencedOut):
        Guards(Token("a", 7)).sql(connection).enter(connection.cursor())


def test_first_holders_that_race_are_ordered(url: str) -> None:
    keeper = SqlKeeper(lambda: psycopg.connect(url))
    keeper.create_table()
    for round_number in range(5):
        race(keeper, f"race {round_number}")


def race(keeper: SqlKeeper, name: str) -> None:
    seen: dict[int, int] = {}
    start = threading.Barrier(6)

    def admit(fence: int) -> None:
        start.wait(30)
        seen[fence] = keeper.admit(name, fence)

    threads = [threading.Thread(target=admit, args=(fence,)) for fence in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 6
    assert seen[6] == 6
    assert all(highest >= fence for fence, highest in seen.items())
    assert keeper.admit(name, 0) == 6
