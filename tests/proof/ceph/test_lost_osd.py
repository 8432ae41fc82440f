"""Two gateways under load while OSDs are killed and come back: nothing acknowledged is lost.

STRONGROOM_PROOF_OSD_ROUNDS is the number of kills.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from strongroom.cli.exits import Exit
from strongroom.database import DatabaseSettings
from tests.cli.command import in_process
from tests.engines.postgres.patience import until
from tests.over_postgres import new_store
from tests.proof.ceph.cluster import OSDS, CephCluster
from tests.proof.ceph.long_blobs import LongBlobs
from tests.proof.ceph.pools import RealPool
from tests.proof.postgres.gateway import Gateway
from tests.proof.postgres.http_store import Address

_ROUNDS: Final = int(os.environ.get("STRONGROOM_PROOF_OSD_ROUNDS", "20"))
_LOAD_S: Final = 8.0


@contextmanager
def _gateways(store: DatabaseSettings, folder: Path) -> Iterator[list[Gateway]]:
    """Two gateways of a store, which serve beside each other. They remove at once what is
    dropped."""
    flags = (
        *("--store-schema", store.schema, "--bodies", str(store.bodies)),
        *("--store-mode", "active-active", "--keep-dropped", "0s"),
    )
    with ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            gateway = Gateway(store.url, folder, name, flags=flags)
            stack.callback(gateway.stop)
            until(gateway.serves, f"it does not serve: {folder}")
            made.append(gateway)
        yield made


@pytest.mark.timeout(3600)
def test_no_answered_body_is_lost_when_an_osd_is_killed(
    ceph: CephCluster, pool: RealPool, tmp_path: Path
) -> None:
    store = replace(new_store(), bodies=pool.url)
    given = ("--schema", store.schema)
    init = in_process("store", "init", store.url, *given, "--bodies", pool.url)
    assert init.code == Exit.DONE, init.err
    answered = 0
    with _gateways(store, tmp_path) as gateways:
        for turn in range(_ROUNDS):
            answered += _round(ceph, [one.services for one in gateways], turn)
            checked = in_process("doctor", store.url, *given)
            assert checked.code == Exit.DONE, checked.out
    checked = in_process("doctor", store.url, *given)
    assert checked.code == Exit.DONE, checked.out
    print(f"{_ROUNDS} OSDs killed, {answered} writes and deletions answered, 0 lost")
    print(checked.out)


def _round(ceph: CephCluster, addresses: Sequence[Address], turn: int) -> int:
    chance = random.Random(turn)
    osd = ceph.osds[turn % OSDS]
    with LongBlobs(addresses, f"round{turn}", turn) as load:
        time.sleep(chance.uniform(0.5, 2.5))
        osd.stop(signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(_LOAD_S / 2)
        osd.start()
        time.sleep(_LOAD_S / 4)
    ceph.wait_until_whole()
    assert load.kept, "nothing was answered"
    lost = load.lost()
    assert not lost, lost
    count = len(load.moments) + len(load.deleted)
    print(
        f"round {turn}: {count} answered, longest gap {load.gap_s(killed):.1f} s, "
        f"refused {dict(load.refused)}",
        flush=True,
    )
    return count
