"""How long what a gateway did is not done: measured for each kind of work, and printed.

A request at a neighbour that needs nothing of a dead gateway is answered as before. A copy of the
dead one goes on once it counts as dead, after the 10 s of membership.py, and a share is served
again. A gateway that is stopped in order hands over at once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.client import HOST, Client
from tests.conformance.sources import Source, Sources
from tests.effort import scaled
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.serving import Serving
from tests.proof.gateways.ways import LOST, Way
from tests.proof.postgres.http_load import HttpLoad
from tests.proof.postgres.http_store import made

ROUNDS = scaled(20)
NEIGHBOUR_S = 1.0
DEAD_S = 12.0
CLEAN_S = 1.0
_END_S = 60.0
_PAUSE_S = 0.02


@contextmanager
def two(folder: Path) -> Iterator[Serving]:
    flags = ("--copy-source-host", HOST)
    with (
        quick_server(folder) as server,
        Serving([server.url] * 2, folder, flags=flags) as serving,
    ):
        made(serving.way.clients().blobs.put("/gaps?restype=container"))
        yield serving


def show(what: str, found: list[float], aim_s: float) -> None:
    print(
        f"{what}: {len(found)} times, median {statistics.median(found):.2f} s, "
        f"at most {max(found):.2f} s, the aim is {aim_s:.0f} s",
        flush=True,
    )


def until_done(done: Callable[[], bool]) -> float:
    """Return how many seconds pass until it is."""
    began = time.monotonic()
    while True:
        try:
            if done():
                return time.monotonic() - began
        except LOST:
            pass  # it is not there yet
        assert time.monotonic() - began < _END_S, "it never is"
        time.sleep(_PAUSE_S)


def only(serving: Serving, number: int) -> Client:
    """Return a client of the Blob service of one gateway."""
    return Way([serving.gateways[number].services.port]).clients().blobs


def of_files(serving: Serving, number: int) -> Client:
    """Return a client of the File service of one gateway."""
    return Way([serving.gateways[number].services.port], _END_S).clients().files


def end(serving: Serving, number: int, *, is_clean: bool) -> None:
    """Stop a gateway in order, or kill it."""
    began = time.monotonic()
    serving.gateways[number].stop() if is_clean else serving.kill(number)
    print(f"the gateway took {time.monotonic() - began:.2f} s to end", flush=True)


def test_a_neighbour_answers_as_before(tmp_path: Path) -> None:
    found = []
    with two(tmp_path) as serving:
        for seed in range(ROUNDS):
            neighbour = Way([serving.gateways[1 - seed % 2].services.port])
            load = HttpLoad(neighbour, f"gap{seed}", writers=1)
            load.acknowledges(20)
            killed = time.monotonic()
            serving.kill(seed % 2)
            time.sleep(2.0)
            load.stop()
            found.append(load.gap_s(killed))
            serving.start(seed % 2)
    show("requests at a neighbour of a killed gateway", found, NEIGHBOUR_S)
    assert statistics.median(found) < NEIGHBOUR_S


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("is_clean", [False, True])
def test_a_copy_goes_on_at_another_gateway(tmp_path: Path, is_clean: bool) -> None:
    with two(tmp_path) as serving:
        found = [_copied(serving, seed, is_clean=is_clean) for seed in range(max(2, ROUNDS // 2))]
    if is_clean:
        show("copies after a clean stop", found, CLEAN_S)
    else:
        show("copies of a killed gateway", found, DEAD_S)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("is_clean", [False, True])
def test_a_share_is_served_by_another_gateway(tmp_path: Path, is_clean: bool) -> None:
    with two(tmp_path) as serving:
        found = [_shared(serving, seed, is_clean=is_clean) for seed in range(max(2, ROUNDS // 2))]
    if is_clean:
        show("shares after a clean stop", found, CLEAN_S)
    else:
        show("shares of a killed gateway", found, DEAD_S)


def _shared(serving: Serving, seed: int, *, is_clean: bool) -> float:
    """Use a share at a gateway and end that one. Return how long the share was not served then."""
    serves, share = seed % 2, f"/share{seed}"
    own, other = of_files(serving, serves), of_files(serving, 1 - serves)
    made(own.put(f"{share}?restype=share"))
    made(own.put(f"{share}/a", {"x-ms-content-length": "512", "x-ms-type": "file"}))
    end(serving, serves, is_clean=is_clean)
    gap_s = until_done(lambda: other.get(f"{share}/a").body == bytes(512))
    serving.start(serves)
    return gap_s


def _copied(serving: Serving, seed: int, *, is_clean: bool) -> float:
    """Begin a copy at a gateway and end that one. Return how long the copy took then."""
    runs, target, body = seed % 2, f"/gaps/copy{seed}", b"copied " * 30_000
    own, other = only(serving, runs), only(serving, 1 - runs)
    with Sources() as sources:
        source = sources.add(f"/{seed}", Source(body, held=True))
        made(own.put(target, {"x-ms-copy-source": source}))
        assert other.head(target)["x-ms-copy-status"] == "pending"
        end(serving, runs, is_clean=is_clean)
        sources.release()
        gap_s = until_done(lambda: other.head(target)["x-ms-copy-status"] == "success")
    assert other.get(target).body == body
    serving.start(runs)
    return gap_s
