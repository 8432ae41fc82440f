"""One round of load with a fault each: sessions ended, a primary lost, a gateway stopped.

Lives here: what happens in a round, and its verdict. Must not live here: how many rounds there are;
`make test` has one of each, tests/proof/postgres many.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from strongroom.engines.base import EngineError, StorageEngine
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import face, put
from tests.coordination.proxy import Proxy
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.cluster import PostgresCluster
from tests.engines.postgres.gateway_process import LATE, GatewayProcess, serving
from tests.engines.postgres.load import Load, Verdict
from tests.engines.postgres.patience import PATIENCE_S, soon
from tests.engines.postgres.servers import Administrator

_SESSIONS: Final = (
    "SELECT pid, query LIKE '%%commit_(%%' AND state = 'active' FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND application_name <> %s"
)
_IN_SYNC_REP: Final = "SELECT pid, query FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
_COUNT: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'strongroom'"
_NETWORK_S: Final = 0.5
_SETTLED_S: Final = 0.3


@asynccontextmanager
async def gateways(count: int, url: str, schema: str) -> AsyncIterator[list[PostgresEngine]]:
    """Several gateways of one store; none of them may end by itself."""
    fatal: list[EngineError] = []
    stores = [await serving(url, schema) for _ in range(count)]
    for store in stores:
        store.on_fatal(fatal.append)
    try:
        yield stores
        assert not fatal, fatal
    finally:
        for store in stores:
            await store.close()


async def sessions_ended(
    url: str, schema: str, administrator: Administrator, seconds: float, seed: int
) -> tuple[Verdict, int]:
    """End a session of two gateways every 0.2 s, half of the time one inside a commit. Return the
    verdict, and how many were ended."""
    chance, ended = random.Random(seed), 0
    async with gateways(2, url, schema) as stores:
        load = Load(lambda: stores, seed=seed)
        await load.acknowledges(50)
        for _ in range(round(seconds / 0.2)):
            await asyncio.sleep(0.2)
            ended += await asyncio.to_thread(end_one, administrator, chance)
        await load.acknowledges(50)
        await load.stop()
        return await load.verdict(stores[0]), ended


def end_one(administrator: Administrator, chance: random.Random) -> int:
    """Return 1 if a session was there."""
    rows: list[tuple[int, bool]] = []
    commit_wanted = chance.random() < 0.5
    for _ in range(50):
        rows = administrator.run(_SESSIONS, (administrator.name,))
        committing = [process for process, commits in rows if commits]
        if committing or not commit_wanted:
            break
    chosen = committing if commit_wanted and committing else [process for process, _ in rows]
    if not chosen:
        return 0
    administrator.run("SELECT pg_terminate_backend(%s)", (chance.choice(chosen),))
    return 1


async def primary_lost(cluster: PostgresCluster, schema: str, seed: int) -> tuple[Verdict, float]:
    """Kill the primary under the load of two gateways, and promote a standby. Return the verdict,
    and how many seconds the promotion took."""
    async with gateways(2, cluster.url, schema) as stores:
        load = Load(lambda: stores, seed=seed)
        await load.acknowledges(random.Random(seed).randint(50, 400))
        await asyncio.to_thread(cluster.kill_primary)
        taken = await asyncio.to_thread(cluster.promote)
        await load.acknowledges(100)
        await load.stop()
        return await load.verdict(stores[1]), taken


async def primary_hangs(cluster: PostgresCluster, schema: str, seed: int) -> Verdict:
    """Stop the primary's processes under load, and promote the standby. The stopped ones go on when
    the gateways have found the new primary."""
    async with gateways(2, cluster.url, schema) as stores:
        load = Load(lambda: stores, seed=seed)
        await load.acknowledges(100)
        hanging = cluster.primary
        await asyncio.to_thread(cluster.pause_primary)
        await asyncio.to_thread(cluster.promote)
        await load.acknowledges(100)
        cluster.nodes[hanging].resume()
        await load.acknowledges(100)
        await load.stop()
        return await load.verdict(stores[0])


async def server_killed(server: PostgresServer, schema: str, seed: int) -> Verdict:
    """Kill all processes of the only server under load, and start it again."""
    async with gateways(2, server.url, schema) as stores:
        load = Load(lambda: stores, seed=seed)
        await load.acknowledges(random.Random(seed).randint(50, 400))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.restart)
        await load.acknowledges(100)
        await load.stop()
        return await load.verdict(stores[0])


async def network_disturbed(server: PostgresServer, schema: str, seed: int) -> Verdict:
    """Delay, hold back, reset and cut the network between one of two gateways and the server, and
    lose answers of the server. Nothing lasts so long that the gateway is declared dead."""
    with Proxy(server.address, seed) as proxy:
        far = server.url.replace(server.address, proxy.address)
        async with gateways(1, server.url, schema) as near, gateways(1, far, schema) as behind:
            load = Load(lambda: (near[0], behind[0]), seed=seed)
            await load.acknowledges(50)
            for fault in random.Random(seed).sample(NETWORK_FAULTS, len(NETWORK_FAULTS)):
                await asyncio.to_thread(fault, proxy)
                await asyncio.sleep(_NETWORK_S)
                await asyncio.to_thread(proxy.heal)
                await load.acknowledges(20)
            await load.stop()
            return await load.verdict(near[0])


def _delay(proxy: Proxy) -> None:
    proxy.delay_s = 0.02


def _lose_answers(proxy: Proxy) -> None:
    proxy.lose_answers = 0.02


def _lose_requests(proxy: Proxy) -> None:
    proxy.lose_requests = 0.02


NETWORK_FAULTS: Final = (
    *(_delay, _lose_answers, _lose_requests),
    *(Proxy.hold, Proxy.cut, Proxy.reset),
)


async def gateway_killed(url: str, schema: str, folder: Path, seed: int) -> Verdict:
    """Kill the process of one of two gateways under load; the other one goes on."""
    async with gateways(1, url, schema) as stores:
        killed = GatewayProcess(url, schema, "load", "killed", folder)
        load = Load(lambda: stores, writers=6, name="other", seed=seed)
        try:
            await killed.says("receipt")
            await asyncio.sleep(random.Random(seed).uniform(0.1, 1.0))
        finally:
            killed.kill()
        await load.acknowledges(100)
        await load.stop()
        load.receipts += killed.receipts
        return await load.verdict(stores[0])


async def standby_away(
    cluster: PostgresCluster, schema: str, seconds: float
) -> tuple[Verdict, int]:
    """Leave the primary without its only standby for a time. Return the verdict, and how many
    sessions the server had at most meanwhile."""
    (standby,) = cluster.standbys
    async with gateways(1, cluster.url, schema) as stores:
        load = Load(lambda: stores)
        await load.acknowledges(50)
        cluster.nodes[standby].kill()
        most = 0
        for _ in range(round(seconds)):
            await asyncio.sleep(1.0)
            most = max(most, int(await asyncio.to_thread(cluster.ask, _COUNT)))
        await asyncio.to_thread(cluster.nodes[standby].restart)
        await load.acknowledges(100)
        await load.stop()
        return await load.verdict(stores[0]), most


async def confirmed(cluster: PostgresCluster, schema: str, function: str) -> tuple[bool, bool]:
    """End the session of a commit while it waits for the only standby, and lose the primary.

    The standby is killed, not stopped. A stopped one would find in its socket what was sent to it
    meanwhile, and lose nothing.

    Arguments:
        function: of PostgreSQL, which ends the wait: pg_terminate_backend or pg_cancel_backend.

    Returns: whether the commit was acknowledged before the primary was lost, and whether what was
        acknowledged is there.
    """
    store = await serving(cluster.url, schema)
    try:
        await put(store, (face(), b"before"))
        (standby,) = cluster.standbys
        cluster.nodes[standby].kill()
        committing = asyncio.create_task(put(store, (face(), b"after")))
        await _end_wait(cluster, function, committing)
        was_early = committing.done()
        cluster.kill_primary()
        await asyncio.to_thread(cluster.nodes[standby].restart)
        await asyncio.to_thread(cluster.promote)
        async with asyncio.timeout(PATIENCE_S):
            stamp = await committing
            return was_early, await _has(store, stamp)
    finally:
        await store.close()


async def _has(store: StorageEngine, stamp: int) -> bool:
    (record,) = await store.read([face()])
    return record is not None and (record.value, record.version) == (b"after", stamp)


async def _end_wait(cluster: PostgresCluster, function: str, committing: asyncio.Task[int]) -> None:
    """End the wait of the commit for a standby. Return once the gateway waits again, or has
    acknowledged the commit."""
    administrator = cluster.administrator()

    def waits(statement: str) -> bool:
        return any(statement in query for _, query in administrator.run(_IN_SYNC_REP))

    await soon(lambda: waits("commit_("), "no commit waits for the standby")
    process = next(one for one, query in administrator.run(_IN_SYNC_REP) if "commit_(" in query)
    administrator.run(f"SELECT {function}(%s)", (process,))
    await soon(lambda: not waits("commit_("), "it still waits")
    await soon(lambda: committing.done() or waits("confirm_("), "it neither waits nor ends")
    administrator.close()
    await asyncio.sleep(_SETTLED_S)


async def gateway_stopped_before_its_commit(url: str, schema: str, folder: Path) -> str:
    """Stop a gateway between a decision and its commit until it is declared dead, and let it go on.
    Return why its commit was refused; empty if it was not."""
    async with gateways(1, url, schema) as (other,):
        late = GatewayProcess(url, schema, "late", "one", folder)
        try:
            await late.is_stopped()
            await _declared_dead(other, await late.says("number"))
            await put(other, (LATE, b"another"))
            late.resume()
            await late.end()
        finally:
            late.kill()
        (record,) = await other.read([LATE])
        assert record is not None and record.value == b"another", "a dead gateway has committed"
        return str(next((line["refused"] for line in late.said if "refused" in line), ""))


async def _declared_dead(store: PostgresEngine, number: int) -> None:
    await soon(lambda: number in store.gateways.table.rows, "it has not joined")
    await soon(lambda: number not in store.gateways.table.rows, "it is not declared dead")


async def gateway_stopped_under_load(
    url: str, schema: str, folder: Path, seconds: float
) -> tuple[Verdict, bool]:
    """Stop one of two gateways under load. Return the verdict on both, and whether the stopped one
    said that it ends."""
    async with gateways(1, url, schema) as stores:
        stopped = GatewayProcess(url, schema, "load", "stopped", folder)
        try:
            load = Load(lambda: stores, writers=6, name="other")
            await stopped.says("receipt")
            await load.acknowledges(50)
            stopped.stop()
            await asyncio.sleep(seconds)
            stopped.resume()
            await load.acknowledges(50)
            await asyncio.sleep(2.0)
            await stopped.end()
        finally:
            stopped.kill()
        await load.stop()
        load.receipts += stopped.receipts
        return await load.verdict(stores[0]), any("fatal" in line for line in stopped.said)
