"""Two schedulers, of which one leads; the leader dies, and the other takes over.

    python examples/scheduler.py

Each term has a fence. The job table refuses whatever an older leader still writes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import tempfile
import time
from pathlib import Path

from steps import endpoint

from strongroom import coordination

TTL_S = 2.0


def scheduler(store: str, database: Path, name: str) -> None:
    """One replica: campaigns, and while it leads schedules a job every 50 ms."""
    with coordination.connect(store, label=name) as client:
        election = client.election("scheduler", value=name, ttl=TTL_S)
        connection = sqlite3.connect(database, timeout=60, isolation_level=None)
        with election.lead() as term:
            while True:
                term.check()
                connection.execute(
                    "INSERT INTO jobs SELECT ?, ? WHERE NOT EXISTS"
                    " (SELECT 1 FROM jobs WHERE fence > ?)",
                    (term.fence, name, term.fence),
                )
                time.sleep(0.05)


def fences(database: Path) -> list[tuple[int, str]]:
    """Who has scheduled with which fence, in order."""
    connection = sqlite3.connect(database, timeout=60)
    found = connection.execute("SELECT DISTINCT fence, who FROM jobs ORDER BY rowid").fetchall()
    connection.close()
    return [(fence, who) for fence, who in found]


def main() -> None:
    """Start both, kill the leader, and see who goes on."""
    with endpoint() as at, tempfile.TemporaryDirectory() as folder:
        os.environ["AZURE_STORAGE_CONNECTION_STRING"] = at.connection_string
        database = Path(folder) / "jobs.db"
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE jobs (fence INTEGER, who TEXT)")
        connection.commit()
        spawn = multiprocessing.get_context("spawn")
        replicas = {
            name: spawn.Process(target=scheduler, args=("azure:///replicas", database, name))
            for name in ("first", "second")
        }
        for replica in replicas.values():
            replica.start()
        try:
            while len(seen := fences(database)) < 1:
                time.sleep(0.05)
            leader = seen[0][1]
            pid = replicas[leader].pid
            assert pid is not None
            print(f"the {leader} scheduler leads, fence {seen[0][0]}; it is killed")
            os.kill(pid, signal.SIGKILL)
            while len(seen := fences(database)) < 2:
                time.sleep(0.05)
            print(f"the {seen[1][1]} scheduler leads, fence {seen[1][0]}")
            assert seen[1][1] != leader and seen[1][0] > seen[0][0]
        finally:
            connection.close()
            for replica in replicas.values():
                replica.kill()
                replica.join()


if __name__ == "__main__":
    main()
