"""Long bodies in a folder, beside what the folder's disk does without any server.

The same folder gets the bodies of a gateway over PostgreSQL, and appends of 4 MiB with a sync
after each, as `dd bs=4M oflag=dsync` makes them. A client uploads 64 MiB in blocks of 4 MiB. Each
block is a body of its own, which is synced before it is answered.
"""

import itertools
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.disk import append_and_sync_mb_s
from benchmarks.results import Row, ratio_of, row
from benchmarks.servers import Server, strongroom_command
from benchmarks.turns import Turns
from benchmarks.workloads import WORKLOADS

NAME: Final = "64 MiB up into a folder"
DISK: Final = "dd with sync"
_CONNECTIONS: Final = (1, 8)


def bodies_apart(url: str, folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield the rate of uploads into a folder, for one client and for several."""
    shared = folder / "shared"
    shared.mkdir()
    flags = ("--store-schema", "apart", "--bodies", f"file://{shared}")
    program = Path(sys.executable).with_name("strongroom")
    make = [str(program), "store", "init", url, "--schema", "apart", "--bodies", f"file://{shared}"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)

    def command(data: Path, ports: list[int]) -> list[str]:
        return [*strongroom_command(data, ports), "--store", url, *flags]

    server = Server("apart", command, folder / "apart")
    try:
        server.start()
        for connections in _CONNECTIONS:
            yield _compared(server, shared, connections, turns)
    finally:
        server.discard()


def _compared(server: Server, shared: Path, connections: int, turns: Turns) -> Row:
    (upload,) = [one for one in WORKLOADS if one.name == "64 MiB up"]
    numbers = itertools.count(connections * 1000)
    endpoint = server.endpoint_of(upload.service)
    upload.prepare(endpoint)
    ours: list[float] = []
    disk: list[float] = []
    for who in turns.of((NAME, DISK)):
        if who == DISK:
            disk.append(append_and_sync_mb_s(shared, turns.slice_s))
        else:
            load = upload.load(endpoint, next(numbers), connections, turns.slice_s)
            ours.append(upload.rate(endpoint.load(load)))
    return row(
        NAME, connections, "MB/s", statistics.median(ours), statistics.median(disk),
        ratio=ratio_of(ours, disk), slices=(tuple(ours), tuple(disk)), other=DISK,
    )  # fmt: skip
