"""A reset that is killed, or cut off by a power cut, leaves each place whole or gone, and another
one completes it."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.services import reset as services_reset
from strongroom.services.core.runner import Services
from strongroom.services.reset import ResetScope, reset
from strongroom.services.sweeper import Sweeper
from strongroom.store.integrity import Integrity
from strongroom.testing import InProcessServer, Server
from strongroom.testing.server import ServerFailed
from tests.cli.command import in_process
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.durability.power_cuts import BALLAST_BYTES, SocketlessClient
from tests.durability.rounds import CREDENTIAL
from tests.effort import scaled
from tests.engines.disks.disk import Disk
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import options_on

CONTAINERS = 500
_BODY = b"x" * 5000
_LONGEST_S = 0.15


def fill(data: Path) -> None:
    """Make a data directory that may be reset, with many containers that have one blob each."""
    with InProcessServer.start(data=data, test_clock=False, allow_reset=True) as server:
        threads = [threading.Thread(target=_fill, args=(server.port, part)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _fill(port: int, part: int) -> None:
    client = Client(port, CREDENTIAL)
    for number in range(part, CONTAINERS, 4):
        expect(client.put(f"/box-{number}?restype=container"), 201)
        expect(client.put(f"/box-{number}/b", PUT_BLOB, _BODY), 201)
    client.close()


def left(client: Client) -> Iterator[int]:
    """Yield the containers that are there. Each must have its blob, and no other one has."""
    for number in range(CONTAINERS):
        there = client.head(f"/box-{number}?restype=container").status
        found = client.get(f"/box-{number}/b")
        assert (there, found.status) in ((200, 200), (404, 404)), number
        if there == 200:
            assert found.body == _BODY
            yield number


def killed_during_reset(server: Server, delay_s: float) -> bool:
    """Kill the server while it is reset. Return whether the reset was answered before."""
    answered = threading.Event()

    def reset() -> None:
        try:
            server.reset()
        except (OSError, ServerFailed):
            return
        answered.set()

    asking = threading.Thread(target=reset)
    asking.start()
    time.sleep(delay_s)
    was_answered = answered.is_set()
    server.kill()
    asking.join()
    return was_answered


def test_a_killed_reset_leaves_every_place_whole_or_gone(tmp_path: Path) -> None:
    rng, halves = random.Random(1), 0
    fill(tmp_path / "filled")
    for kill in range(scaled(30)):
        data = tmp_path / f"data-{kill}"
        shutil.copytree(tmp_path / "filled", data)
        with Server.start(data=data, test_clock=False, flags=("--allow-reset",)) as server:
            was_answered = killed_during_reset(server, rng.uniform(0.001, _LONGEST_S))
            server.restart()
            client = Client(server.port, CREDENTIAL)
            found = len(list(left(client)))
            assert not (was_answered and found)
            halves += 0 < found < CONTAINERS
            server.reset()
            assert list(left(client)) == []
            client.close()
        checked = in_process("doctor", data, "--json")
        assert checked.code == 0, checked.out
        assert json.loads(checked.out)["whole"]
    print(f"{halves} of {scaled(30)} kills came between two places")


PLACES = 24
ACCOUNT = DEVELOPMENT_ACCOUNT_NAME
SCOPE = ResetScope((ACCOUNT,), tuple(Service), (ACCOUNT,), True)
_vfs_numbers = itertools.count()


async def _reset_until_cut(disk: Disk, clock: ManualClock, delay: int) -> bool:
    """Fill a store, and reset it until the power ends. Return whether the reset was complete.

    Arguments:
        delay: after how many operations of the disk since the reset began the power ends.
    """
    with DiskVfs(disk, f"strongroom-reset-{next(_vfs_numbers)}") as vfs:
        options = options_on(disk, vfs, 32 * 1024, BALLAST_BYTES)
        store = await open_store(f"{disk.root}/data", clock, allow_reset=True, options=options)
        try:
            client = SocketlessClient(Services(store, clock), clock, Service.BLOB)
            for number in range(PLACES):
                await client.ask("PUT", f"/box-{number}?restype=container")
                await client.ask("PUT", f"/box-{number}/b", PUT_BLOB, _BODY)
            disk.cut_at = disk.operations + delay
            await reset(client.services, SCOPE)
            return not disk.lost_power
        except EngineError:
            assert disk.lost_power
            return False
        finally:
            await store.close()


async def _left_after_cut(data: Path, clock: ManualClock) -> int:
    """Return how many containers are left. Each must be whole. Then reset and sweep the rest."""
    options = EmbeddedOptions(ballast_bytes=BALLAST_BYTES)
    store = await open_store(data, clock, allow_reset=True, options=options)
    try:
        client = SocketlessClient(Services(store, clock), clock, Service.BLOB)
        found = 0
        for number in range(PLACES):
            there = await client.ask("HEAD", f"/box-{number}?restype=container")
            blob = await client.ask("GET", f"/box-{number}/b")
            assert (there.status, blob.status) in ((200, 200), (404, 404)), number
            assert there.status == 404 or blob.body == _BODY
            found += there.status == 200
        await reset(client.services, SCOPE)
        clock.advance(1)
        await Sweeper(client.services).run_once()
    finally:
        await store.close()
    with Inspection(data) as inspection:
        findings = [*inspection.findings(), *Integrity(inspection).findings(None)]
        assert not findings, findings
        assert not list(inspection.records()), "the sweep has removed everything"
    return found


def test_a_power_cut_leaves_every_place_whole_or_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reset that was complete stays so. The pages are small, so that cuts come between them."""
    monkeypatch.setattr(services_reset, "_PAGE_RECORDS", 4)
    chance, halves = random.Random(1), 0
    for number in range(scaled(80)):
        clock, root = ManualClock(), tmp_path / f"disk-{number}"
        root.mkdir()
        disk = Disk(root)
        complete = asyncio.run(_reset_until_cut(disk, clock, chance.randrange(1, 40)))
        target = tmp_path / f"after-{number}"
        target.mkdir()
        disk.after_power_cut(target, chance.randrange(1 << 30))
        found = asyncio.run(_left_after_cut(target / "data", clock))
        assert not (complete and found)
        halves += 0 < found < PLACES
    assert halves, "no cut came between two places"
