"""The command line of the benchmarks: what runs, on how much, and where the results go."""

import argparse
import datetime
import importlib.metadata
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from benchmarks import coordination, disk, growth, soak
from benchmarks.comparison import throughput
from benchmarks.console_cost import console_cost
from benchmarks.endpoint import UnexpectedAnswer
from benchmarks.engine import EngineFailed
from benchmarks.engines import engines
from benchmarks.etcd import ETCD, EtcdFailed, etcd_version
from benchmarks.fairness.measuring import fairness
from benchmarks.files import files, samba_version
from benchmarks.results import Results, Row, cells
from benchmarks.samba import SMBD
from benchmarks.sampling import machine
from benchmarks.servers import (
    AZURITE,
    STRONGROOM,
    Server,
    ServerFailed,
    azurite_command,
    install_azurite,
    strongroom_command,
)
from benchmarks.table_workloads import QUEUES, TABLES
from benchmarks.tag_workloads import TAGS
from benchmarks.turns import Turns
from benchmarks.workloads import WORKLOADS

PARTS: Final = (
    "coordination", "tables", "queues", "tags", "throughput", "listing", "restart", "scale",
    "memory", "files",
)  # fmt: skip
# These parts run only on request: the first has a duration of its own, others take minutes, and
# the last needs a PostgreSQL.
LONG_PARTS: Final = ("soak", "fairness", "console", "engines")
_RESULTS: Final = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True, slots=True)
class Scope:
    """The size of a run.

    Arguments:
        name: for the results.
        turns: the length and number of the slices of each server.
        listed: the number of blobs in the compared listing; Azurite takes long to store them.
        many: the number of blobs in the larger of the two servers whose costs are compared.
        filled: the number of blobs in the memory measure.
    """

    name: str
    turns: Turns
    listed: int
    many: int
    filled: int


QUICK: Final = Scope("quick", Turns(0.5, 3, 0.5), 3_000, 5_000, 10_000)
DEFAULT: Final = Scope("default", Turns(1.0, 7, 2.0), 10_000, 50_000, 100_000)
FULL: Final = Scope("full", Turns(2.0, 11, 4.0), 50_000, 50_000, 1_000_000)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few minutes, small numbers")
    size.add_argument("--full", action="store_true", help="the numbers of the targets; hours")
    parser.add_argument("--only", choices=("strongroom", "azurite"), help="without the other")
    parser.add_argument(
        "--parts",
        default=",".join(PARTS),
        help=f"some of {','.join(PARTS)}; all by default; or {', '.join(LONG_PARTS)}",
    )
    parser.add_argument(
        "--minutes", type=int, default=soak.DEFAULT_MINUTES, help="how long soak takes; 60"
    )
    parser.add_argument("--connections", default="1,32", help="for the throughput; 1,32")
    parser.add_argument("--folder", type=Path, help="where the servers keep their data")
    parser.add_argument("--json", type=Path, default=_RESULTS, help="where the results go")
    found = parser.parse_args()
    unknown = set(found.parts.split(",")) - {*PARTS, *LONG_PARTS}
    if unknown:
        parser.error(f"--parts knows no {', '.join(sorted(unknown))}")
    if found.minutes < 1:
        parser.error("--minutes must be at least 1")
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the requested parts, the folder for data, and the creation of servers."""

    scope: Scope
    parts: tuple[str, ...]
    connections: tuple[int, ...]
    names: tuple[str, ...]
    folder: Path
    stack: ExitStack
    minutes: int
    soak_table: Path

    def server(self, name: str, folder: str) -> Server:
        """Start a server, which is stopped with the run at the latest."""
        command = strongroom_command if name == STRONGROOM else azurite_command
        server = Server(name, command, self.folder / folder)
        self.stack.callback(server.stop, kill=True)
        server.start()
        return server

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all requested parts."""
        yield from self._coordination()
        yield from self._entities_and_messages()
        yield from self._comparison()
        yield from self._growth()
        if "files" in self.parts and STRONGROOM in self.names:
            yield from files(self.folder / "files", self.scope.turns)
        if "console" in self.parts and STRONGROOM in self.names:
            yield from console_cost(self.folder, self.scope.turns)
        if "engines" in self.parts and STRONGROOM in self.names:
            yield from engines(self.folder, self.scope.turns)
        if "fairness" in self.parts:
            yield from fairness(self.folder)
        if "soak" in self.parts:
            server = self.server(self.names[0], "soak")
            yield from soak.soak(server, self.minutes, self.soak_table)
            server.discard()

    def _coordination(self) -> Iterator[Row]:
        """Yield the rows of the toolkit, measured on a Strongroom of its own, with etcd beside
        it."""
        if "coordination" in self.parts and STRONGROOM in self.names:
            server = self.server(STRONGROOM, "coordination")
            yield from coordination.rows(server, self.folder, self.scope.turns)
            server.discard()

    def _comparison(self) -> Iterator[Row]:
        if not {"throughput", "listing", "restart"} & set(self.parts):
            return
        scope = self.scope
        servers = [self.server(name, name.lower()) for name in self.names]
        for server in servers:
            server.pause()
        if "throughput" in self.parts:
            yield from throughput(servers, WORKLOADS, self.folder, scope.turns, self.connections)
        blobs = scope.listed if "listing" in self.parts else 0
        for server in servers:
            with server.awake():
                growth.fill(server, blobs)
        if "listing" in self.parts:
            yield from growth.listing(servers, blobs, scope.turns)
        if "restart" in self.parts:
            yield from growth.restarts(servers, blobs)
        for server in servers:
            server.discard()

    def _entities_and_messages(self) -> Iterator[Row]:
        """Yield the rows of tables, queues and blobs' tags, each on servers with no other data."""
        scope = self.scope
        for part, workloads in (("tables", TABLES), ("queues", QUEUES), ("tags", TAGS)):
            if part in self.parts:
                servers = [self.server(name, f"{part}-{name.lower()}") for name in self.names]
                for server in servers:
                    server.pause()
                yield from throughput(
                    servers, workloads, self.folder, scope.turns, self.connections
                )
                for server in servers:
                    server.discard()

    def _growth(self) -> Iterator[Row]:
        """Yield the rows about one server alone: Strongroom, unless only Azurite is measured."""
        name, scope = self.names[0], self.scope
        if "scale" in self.parts:
            few, many = self.server(name, "few"), self.server(name, "many")
            for server in (few, many):
                server.pause()
            yield from growth.scale(few, many, scope.many, scope.turns)
            few.discard()
            yield from growth.listing([many], scope.many, scope.turns)
            yield from growth.restarts([many], scope.many)
            many.discard()
        if "memory" in self.parts:
            full = self.server(name, "full")
            yield from growth.memory(full, scope.filled)
            full.discard()


def main() -> int:
    """Run, print the table and write the JSON. Return 0 if every part could be measured."""
    asked = _arguments()
    scope = QUICK if asked.quick else FULL if asked.full else DEFAULT
    names = tuple(name for name in (STRONGROOM, AZURITE) if asked.only in (None, name.lower()))
    signal.signal(signal.SIGTERM, _terminated)
    began = time.monotonic()
    try:
        with _folder(asked.folder) as folder, ExitStack() as stack:
            parts = tuple(asked.parts.split(","))
            versions = _versions(names, parts)
            counts = tuple(int(count) for count in asked.connections.split(","))
            table = asked.json.with_name("soak.md")
            run = Run(scope, parts, counts, names, folder, stack, asked.minutes, table)
            facts = machine(folder)
            syncs, appended = disk.syncs_per_s(folder, 1.0), disk.append_and_sync_mb_s(folder, 1.0)
            rows = []
            for one in run.rows():
                rows.append(one)
                print(" | ".join(cell for cell in cells(one) if cell), file=sys.stderr, flush=True)
    except (EngineFailed, EtcdFailed, ServerFailed, UnexpectedAnswer) as error:
        print(f"stopped: {error}", file=sys.stderr)
        return 1
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    results = Results(now, scope.name, versions, facts, round(syncs), round(appended), rows)
    results.write(asked.json)
    print(f"{results.text()}\n{time.monotonic() - began:.0f} s; written to {asked.json}")
    return 0


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="strongroom-bench-", dir=given))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _versions(names: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str]:
    """Return the version of each program in the run."""
    others = set(parts) - {"coordination", "files", "console", "engines"}
    found = {name: _version(name) for name in names if others or name == STRONGROOM}
    etcd = etcd_version() if "coordination" in parts else None
    samba = samba_version() if "files" in parts else None
    beside = {ETCD: etcd, SMBD: samba}
    return found | {name: version for name, version in beside.items() if version is not None}


def _version(name: str) -> str:
    return install_azurite() if name == AZURITE else importlib.metadata.version("strongroom")
