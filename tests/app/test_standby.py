"""Which servers serve a store in a database: one at a time while others wait, or all of them."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psycopg
import pytest

from strongroom.app import App, DatabaseAway, DataUnusable
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, SelfSigned, Settings, SetupSource, TlsFiles
from strongroom.database import DatabaseSettings, StoreMode
from strongroom.engines.base import Position
from strongroom.engines.membership import MembershipTable
from strongroom.servers.certificates import served
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.storage import opened_store
from strongroom.store.core import keys
from strongroom.testing.ports import HOST, free_port
from tests.app.gateways_of_a_store import GatewayUnderTest, gateway, settings_over
from tests.over_postgres import database, new_store

T = TypeVar("T")


def run(test: Callable[[DatabaseSettings], Awaitable[T]]) -> T:
    """Run a test with a store of its own."""

    async def bounded() -> T:
        return await asyncio.wait_for(test(new_store()), 100)

    return asyncio.run(bounded())


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never held")


async def write(to: GatewayUnderTest, text: bytes) -> None:
    await to.ask("PUT", "/wiki?restype=container")
    assert (await to.ask("PUT", "/wiki/page", text)).status == 201


async def read(of: GatewayUnderTest) -> bytes:
    return (await of.ask("GET", "/wiki/page")).body


def test_the_second_server_waits_and_takes_over_what_the_first_has_answered() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            async with gateway(settings_over(store)) as second:
                await second.until(second.waits)
                await write(first, b"kept")
                await asyncio.sleep(2.5)  # it looks each second, and says it once
                assert second.told == ["waiting: gateway 0 serves this store"]
                assert not second.serves.is_set()
                assert await first.stop() is None
                await second.until(second.serves)
                assert await read(second) == b"kept"
                await write(second, b"later")

    run(test)


def test_a_server_that_waits_warns_of_each_port_that_it_could_not_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            with socket.create_server((HOST, 0)) as other, socket.create_server((HOST, 0)) as own:
                taken, one_port = (one.getsockname()[1] for one in (other, own))
                free = msgspec.structs.replace(settings_over(store), table_port=free_port())
                settings = msgspec.structs.replace(free, queue_port=taken, one_port=one_port)
                async with gateway(settings) as second:
                    await second.until(second.waits)
                    await eventually(lambda: len(_warnings(caplog)) == 2)
                    await asyncio.sleep(1.5)  # it looks again for the right, not for the ports
                    queue, together = _warnings(caplog)
                    assert f"cannot listen on {HOST} port {taken} for the queue service" in queue
                    assert f"port {one_port} for all services" in together
                    other.close()
                    own.close()
                    await first.stop()
                    await second.until(second.serves)

    run(test)


def test_a_look_at_ports_that_hangs_delays_no_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(store: DatabaseSettings) -> None:
        looked = asyncio.Event()

        async def hanging(_: Settings) -> None:
            looked.set()
            await asyncio.Event().wait()

        monkeypatch.setattr("strongroom.app.warn_of_taken_ports", hanging)
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            async with gateway(settings_over(store)) as second:
                await second.until(looked)
                await first.stop()
                await second.until(second.serves)

    run(test)


def test_a_server_that_waits_takes_over_with_the_newest_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The one that it was started with may have ended long ago."""
    monkeypatch.setattr(served, "CHECK_EVERY_S", 0.01)
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    caplog.set_level("INFO", "strongroom")
    old, new = (self_signed_certificate(made(tmp_path / name), SystemClock()) for name in "on")

    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            async with gateway(settings_over(store, tls=TlsFiles(*old))) as second:
                await second.until(second.waits)
                for before, after in zip(old, new, strict=True):
                    before.write_bytes(after.read_bytes())
                await eventually(lambda: "new certificate" in caplog.text)

    run(test)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for one in caplog.records if "could not serve now" in (text := one.getMessage())]


def test_a_server_has_no_works_before_it_has_the_right() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            opened = await opened_store(settings_over(store), SystemClock())
            try:
                gateways = opened.gateways
                assert not any(gateways.owns(b"%d" % number) for number in range(60))
            finally:
                await opened.close()

    run(test)


def test_a_server_that_waits_stops_at_once_and_leaves_the_other_alone() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            async with gateway(settings_over(store)) as second:
                await second.until(second.waits)
                assert await second.stop() is None
                assert second.app is None
            await write(first, b"kept")
            assert not first.ended.done()

    run(test)


def test_a_third_server_learns_which_one_serves_now() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            async with gateway(settings_over(store)) as second:
                await second.until(second.waits)
                async with gateway(settings_over(store)) as third:
                    await third.until(third.waits)
                    third.waits.clear()
                    await first.stop()
                    await asyncio.wait(
                        [asyncio.create_task(one.serves.wait()) for one in (second, third)],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    assert second.serves.is_set() != third.serves.is_set()
                    serving, other = (second, third)[:: 1 if second.serves.is_set() else -1]
                    assert serving.app is not None
                    number = serving.app.store.gateways.number
                    await eventually(
                        lambda: f"waiting: gateway {number} serves this store" in other.told
                    )

    run(test)


async def swept(by: GatewayUnderTest, stays: GatewayUnderTest) -> None:
    """Delete containers, which leaves jobs, and wait until all are done."""
    assert by.app is not None
    for number in range(12):
        assert (await by.ask("PUT", f"/place{number}?restype=container")).status == 201
        assert (await by.ask("DELETE", f"/place{number}?restype=container")).status == 202
    for _ in range(300):
        page = await by.app.store.scan(keys.JOBS, Position(b"", b""), None, 100)
        if not page.keys:
            assert not stays.ended.done()
            return
        await asyncio.sleep(0.1)
    raise AssertionError("jobs are left that nobody does")


def test_all_jobs_are_done_by_those_that_serve_while_another_one_waits() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as serving:
            await serving.until(serving.serves)
            async with gateway(together(store)) as other:
                await other.until(other.waits)
                await swept(serving, stays=other)
                await serving.stop()
                await other.until(other.serves)
                async with gateway(settings_over(store)) as waiting:
                    await waiting.until(waiting.waits)
                    await swept(other, stays=waiting)

    run(test)


def test_a_server_that_was_declared_dead_ends_and_another_one_serves() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            await write(first, b"kept")
            assert first.app is not None
            declare_dead(store)
            error = await asyncio.wait_for(asyncio.shield(first.ended), 30)
            assert error is not None
            assert "dead" in str(error)
            async with gateway(settings_over(store)) as second:
                await second.until(second.serves)
                assert await read(second) == b"kept"

    run(test)


def test_health_says_that_the_database_is_lost_and_that_it_is_back() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as one:
            await one.until(one.serves)
            assert (await one.health()).status == 200
            database().pause()
            try:
                assert (await one.health()).status == 503
            finally:
                database().resume()
            for _ in range(200):
                if (await one.health()).status == 200:
                    return
            raise AssertionError("the database is back, and health does not say so")

    run(test)


def test_a_setup_alone_does_not_wait(tmp_path: Path) -> None:
    file = tmp_path / "setup.toml"
    file.write_text('[[accounts]]\nname = "orders"\nkeys = ["a2V5"]\n')

    async def test(store: DatabaseSettings) -> None:
        settings = settings_over(store, setup=SetupSource(file, only=True))
        async with gateway(settings_over(store)) as serving:
            await serving.until(serving.serves)
            with pytest.raises(DataUnusable, match="gateway 0 serves this store"):
                await App(settings, SystemClock()).set_up()
        await App(settings, SystemClock()).set_up()

    run(test)


def test_a_database_that_does_not_answer_is_told_from_one_that_is_refused() -> None:
    async def test(store: DatabaseSettings) -> None:
        away = DatabaseSettings("postgresql://postgres:s3cret@127.0.0.1:1/store")
        with pytest.raises(DatabaseAway, match=r"PostgreSQL at 127\.0\.0\.1:1/store") as error:
            await App(settings_over(away), SystemClock()).start()
        assert "s3cret" not in str(error.value)
        asynchronous = DatabaseSettings(f"{store.url}?options=-csynchronous_commit%3Doff")
        with pytest.raises(DataUnusable, match="synchronous_commit"):
            await App(settings_over(asynchronous), SystemClock()).start()
        alone = DatabaseSettings(store.url, schema=store.schema, needs_standby=True)
        with pytest.raises(DataUnusable, match="synchronous_standby_names"):
            await App(settings_over(alone), SystemClock()).start()

    run(test)


def declare_dead(store: DatabaseSettings) -> None:
    """Remove all gateways from the store, as another gateway does after 10 s without a
    heartbeat."""
    with psycopg.connect(store.url) as session:
        session.execute(f"SET search_path = {store.schema}".encode())
        row = session.execute("SELECT body FROM membership FOR UPDATE").fetchone()
        assert row is not None
        table = msgspec.msgpack.decode(row[0], type=MembershipTable)
        empty = msgspec.msgpack.encode(msgspec.structs.replace(table, rows={}, holds={}))
        session.execute("UPDATE membership SET version = version + 1, body = %s", (empty,))
        session.execute("DELETE FROM gateways")


def together(store: DatabaseSettings, **more: Any) -> Settings:
    """Return the settings of a server that serves the store beside others."""
    return settings_over(dataclasses.replace(store, mode=StoreMode.ACTIVE_ACTIVE), **more)


def test_servers_of_the_mode_active_active_serve_beside_each_other() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(together(store)) as first, gateway(together(store)) as second:
            await first.until(first.serves)
            await second.until(second.serves)
            await write(first, b"of the first")
            assert await read(second) == b"of the first"
            await write(second, b"of the second")
            assert await read(first) == b"of the second"
            for one in (first, second):
                assert one.app is not None
                assert not one.app.store.gateways.is_alone
            await first.stop()
            assert await read(second) == b"of the second"

    run(test)


def test_servers_of_both_modes_wait_for_each_other() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as alone:
            await alone.until(alone.serves)
            async with gateway(together(store)) as one, gateway(together(store)) as two:
                for waiting in (one, two):
                    await waiting.until(waiting.waits)
                told = "waiting: gateway 0 serves this store in the mode active-passive"
                assert one.told == two.told == [told]
                await alone.stop()
                for serving in (one, two):
                    await serving.until(serving.serves)
                async with gateway(settings_over(store)) as again:
                    await again.until(again.waits)
                    await one.stop()
                    assert two.app is not None
                    number = two.app.store.gateways.number
                    text = f"waiting: gateway {number} serves this store in the mode active-active"
                    await eventually(lambda: again.told[-1] == text)
                    assert not again.serves.is_set()
                    await two.stop()
                    await again.until(again.serves)
                    assert again.app is not None
                    assert again.app.store.gateways.is_alone

    run(test)


def test_a_server_beside_others_that_was_declared_dead_ends() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(together(store)) as first:
            await first.until(first.serves)
            declare_dead(store)
            error = await asyncio.wait_for(asyncio.shield(first.ended), 30)
            assert error is not None
            assert "dead" in str(error)

    run(test)


def test_a_certificate_of_its_own_is_refused_where_several_serve() -> None:
    async def test(store: DatabaseSettings) -> None:
        app = App(together(store, tls=SelfSigned()), SystemClock())
        with pytest.raises(ConfigError, match="--cert and --key"):
            await app.start()

    run(test)
