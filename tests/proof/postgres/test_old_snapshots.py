"""An old snapshot keeps all versions of rows: what commits and heartbeats take meanwhile.

A store of version 1 is measured beside one of the present version, on the same server.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Final

import psycopg
import pytest

from strongroom.clock import SystemClock
from strongroom.engines.postgres.assembly import PostgresOptions, init_store, open_store
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import face, put
from tests.engines.postgres.servers import Administrator, fresh_schema, quick_server
from tests.engines.postgres.version_1 import make_version_1

VERSIONS: Final = (0, 40_000, 160_000)
COMMITS: Final = 400
_RATIO_MAX: Final = 1.6
_ROW: Final = "gateway = 0 AND slot = 1"
# As commits change the row of a slot. In version 1, by its place: to look it up takes too long.
_CHANGES: Final = {
    1: f"""DECLARE row tid := (SELECT ctid FROM outcomes WHERE {_ROW});
        BEGIN FOR i IN 1..%d LOOP
            UPDATE outcomes SET batch = batch + 1 WHERE ctid = row RETURNING ctid INTO row;
            COMMIT; END LOOP; END""",
    2: "BEGIN FOR i IN 1..%d LOOP PERFORM add_bytes_(0, 1, 0); COMMIT; END LOOP; END",
}


def _make_versions(administrator: Administrator, schema: str, version: int, count: int) -> None:
    for setting in (f"search_path = {schema}", "synchronous_commit = off"):
        administrator.run(f"SET {setting}")
    administrator.run(f"DO $$ {_CHANGES[version] % count} $$")
    for setting in ("search_path", "synchronous_commit"):
        administrator.run(f"RESET {setting}")


async def _times_ms(store: PostgresEngine, at: int) -> tuple[float, float]:
    """The middle of commits to partitions of their own, and of looks at the gateways."""
    commits, looks = [], []
    for number in range(COMMITS):
        began = time.perf_counter()
        await put(store, (face(partition=b"%d-%d" % (at, number)), b"value"))
        commits.append(time.perf_counter() - began)
    for _ in range(40):
        began = time.perf_counter()
        await store.gateways.horizon()
        looks.append(time.perf_counter() - began)
    return statistics.median(commits) * 1000, statistics.median(looks) * 1000


async def _measured(
    url: str, schema: str, administrator: Administrator, version: int
) -> list[tuple[float, float]]:
    found, made = [], 0
    for count in VERSIONS:
        # The slot's session is opened anew, since only that learns of its epoch.
        options = PostgresOptions(2, schema=schema, beats=False)
        store = await open_store(url, SystemClock(), options)
        await put(store, (face(), b""))
        await store.close()
        await asyncio.to_thread(_make_versions, administrator, schema, version, count - made)
        made = count
        store = await open_store(url, SystemClock(), options)
        found.append(await _times_ms(store, count))
        await store.close()
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [1, 2])
def test_commits_under_an_old_snapshot(tmp_path: Path, version: int) -> None:
    with quick_server(tmp_path, "-c", "autovacuum=off") as server:
        administrator, schema = Administrator(server.url), fresh_schema()
        if version == 1:
            make_version_1(administrator, schema)
        else:
            asyncio.run(init_store(server.url, schema))
        with psycopg.connect(server.url) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT txid_current()")
            found = asyncio.run(_measured(server.url, schema, administrator, version))
        administrator.close()
    for count, (commit, look) in zip(VERSIONS, found, strict=True):
        print(
            f"version {version}, {count:,} versions: a commit {commit:.2f} ms "
            f"({commit / found[0][0]:.2f}x), a look {look:.2f} ms ({look / found[0][1]:.2f}x)"
        )
    if version > 1:
        assert max(commit for commit, _ in found) < _RATIO_MAX * found[0][0]
        assert max(look for _, look in found) < _RATIO_MAX * found[0][1]
