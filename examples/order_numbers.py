"""Order numbers from many processes and threads, never twice: ids, proved by a primary key.

    python examples/order_numbers.py

Eight processes of eight threads take numbers from one source and insert them into a table of SQLite
whose primary key would refuse a duplicate. One process is killed in the middle: the numbers that it
had reserved are a gap, which is allowed; a duplicate is not.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path

from steps import endpoint

from strongroom import coordination

PROCESSES, THREADS, ORDERS_PER_THREAD = 8, 8, 50


def store_of(connection_string: str) -> str:
    """The toolkit's URL of a container in that account."""
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string
    return "azure:///order-numbers"


def take_orders(store: str, database: Path) -> None:
    """One process: all its threads share one generator."""
    with coordination.connect(store) as client:
        numbers = client.ids("orders", batch=100)

        def run() -> None:
            connection = sqlite3.connect(database, timeout=60, isolation_level=None)
            for _ in range(ORDERS_PER_THREAD):
                connection.execute("INSERT INTO orders VALUES (?)", (numbers.next_id(),))
            connection.close()

        threads = [threading.Thread(target=run) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    """Let them all order at once, and count."""
    with endpoint() as at, tempfile.TemporaryDirectory() as folder:
        store, database = store_of(at.connection_string), Path(folder) / "orders.db"
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)")
        connection.commit()
        spawn = multiprocessing.get_context("spawn")
        workers = [
            spawn.Process(target=take_orders, args=(store, database)) for _ in range(PROCESSES)
        ]
        for worker in workers:
            worker.start()
        while not connection.execute("SELECT count(*) FROM orders").fetchone()[0]:
            workers[0].join(0.01)
        assert workers[0].pid is not None
        os.kill(workers[0].pid, signal.SIGKILL)
        for worker in workers:
            worker.join()
        failed = [worker.exitcode for worker in workers[1:] if worker.exitcode]
        count, highest = connection.execute("SELECT count(*), max(number) FROM orders").fetchone()
        connection.close()
    if failed:
        sys.exit(f"a worker failed: {failed}")
    least = (PROCESSES - 1) * THREADS * ORDERS_PER_THREAD
    assert count >= least
    print(f"{count} orders, no number twice; the highest is {highest}")


if __name__ == "__main__":
    main()
