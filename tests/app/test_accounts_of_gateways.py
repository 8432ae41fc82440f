"""Accounts of servers over a store in a database, beside its modes and its refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from strongroom.app import App
from strongroom.auth.accounts import Account
from strongroom.clock import SystemClock
from strongroom.config import ConfigError
from strongroom.database import DatabaseSettings
from strongroom.servers.identities.accounts_file import ServedAccounts, change_stored_accounts
from strongroom.services.identities import StoreIdentities
from tests.app.gateways_of_a_store import gateway, settings_over
from tests.over_postgres import new_store

T = TypeVar("T")
ORDERS = Account("orders", (b"key",))


def run(test: Callable[[DatabaseSettings], Awaitable[T]]) -> T:
    """Run a test with a store of its own."""

    async def bounded() -> T:
        return await asyncio.wait_for(test(new_store()), 100)

    return asyncio.run(bounded())


async def put(app: App, *accounts: Account) -> None:
    """Let a store have these accounts, as a command does."""
    await change_stored_accounts(StoreIdentities(app.store), lambda _: accounts)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it was never seen")


def names(accounts: ServedAccounts) -> list[str]:
    accounts.get("")  # looks whether they have changed
    return [one.name for one in accounts.all()]


def test_a_gateway_that_waits_serves_at_once_what_was_changed_meanwhile() -> None:
    async def test(store: DatabaseSettings) -> None:
        async with gateway(settings_over(store)) as first:
            await first.until(first.serves)
            assert first.app is not None
            serving = first.app
            await put(serving, ORDERS)
            async with gateway(settings_over(store)) as second:
                await second.until(second.waits)
                await put(serving, ORDERS.rotated(b"new"), Account("more", (b"1",)))
                await until(lambda: names(serving.accounts) == ["more", "orders"])
                await first.stop()
                await second.until(second.serves)
                assert second.app is not None
                assert names(second.app.accounts) == ["more", "orders"]
                assert second.app.accounts.get("orders") == ORDERS.rotated(b"new")

    run(test)


def test_the_known_key_is_not_served_to_other_machines_for_lack_of_accounts() -> None:
    async def test(store: DatabaseSettings) -> None:
        settings = settings_over(store, host="0.0.0.0")
        command = f"account add NAME --store {store.url} --store-schema {store.schema}"
        with pytest.raises(ConfigError, match="development key") as refused:
            await App(settings, SystemClock()).start()
        assert command in str(refused.value)
        async with gateway(settings_over(store)) as local:
            await local.until(local.serves)
            assert local.app is not None
            await put(local.app, ORDERS)
        async with gateway(settings) as served:
            await served.until(served.serves)

    run(test)
