"""Two servers of --store-mode active-active over one PostgreSQL: files at both of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from strongroom.app import CannotListen
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.config import Settings
from strongroom.database import DatabaseSettings, GatewayAddress, StoreMode
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.conformance.answer import expect
from tests.conformance.client import Client, Credential
from tests.over_postgres import new_store

FILE = {"x-ms-type": "file", "x-ms-content-length": "4"}
WRITTEN = {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}


def files_of(server: InProcessServer) -> Client:
    credential = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
    return Client(int(server.file_url.rpartition(":")[2]), credential)


def settings_of(store: DatabaseSettings) -> Settings:
    blob, queue, table, file = (free_port() for _ in range(4))
    return Settings(
        data=None,
        store=store,
        blob_port=blob,
        queue_port=queue,
        table_port=table,
        file_port=file,
    )


@pytest.fixture
def both() -> Iterator[list[InProcessServer]]:
    """Two servers; the second one has named where it listens for the other."""
    store = dataclasses.replace(new_store(), mode=StoreMode.ACTIVE_ACTIVE)
    named = dataclasses.replace(store, gateway_address=GatewayAddress("localhost", free_port()))
    made = []
    for settings in (store, named):
        made.append(InProcessServer(settings_of(settings)))
    yield made
    for server in made:
        server.stop()


def test_each_file_is_written_at_one_gateway_and_read_at_the_other(
    both: list[InProcessServer],
) -> None:
    clients = [files_of(one) for one in both]
    for turn in range(2):
        here, there = clients[turn], clients[1 - turn]
        share = f"/share{turn}"
        expect(here.put(f"{share}?restype=share"), 201)
        for number in range(10):
            path = f"{share}/f{number}"
            expect(here.put(path, FILE), 201)
            expect(there.put(f"{path}?comp=range", WRITTEN, b"%04d" % number), 201)
            assert expect(here.get(path), 200).body == b"%04d" % number
            assert expect(there.get(path), 200).body == b"%04d" % number


def test_an_address_that_is_not_this_machines_is_refused() -> None:
    address = GatewayAddress("192.0.2.1", 0)
    store = dataclasses.replace(new_store(), mode=StoreMode.ACTIVE_ACTIVE, gateway_address=address)
    with pytest.raises(CannotListen, match="--gateway-address HOST") as refused:
        InProcessServer(settings_of(store))
    assert "for the other gateways" in str(refused.value)


def test_a_gateway_that_stops_hands_its_shares_over_without_a_refusal(
    both: list[InProcessServer],
) -> None:
    first, second = (files_of(one) for one in both)
    expect(first.put("/box?restype=share"), 201)
    expect(first.put("/box/f", FILE), 201)
    expect(second.get("/box/f"), 200)
    both[0].stop()
    expect(second.get("/box/f"), 200)
    expect(second.put("/box/f?comp=range", WRITTEN, b"next"), 201)
