"""Many nodes start ahead and wait at a gate; one opens it, and all go at once. Late ones too.

    python examples/release_the_hounds.py

Fifty processes wait. The gate is opened with a payload; five more come later and find it open.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from multiprocessing.queues import Queue

from steps import endpoint

from strongroom import coordination

NODES, LATE_NODES = 50, 5


def node(store: str, ready: Queue[int], released: Queue[tuple[float, object]]) -> None:
    """One node: waits, and tells when it was let through."""
    with coordination.connect(store) as client:
        gate = client.gate("go-live")
        gate.show()
        ready.put(1)
        payload = gate.wait(timeout=60)
        released.put((time.time(), payload))


def main() -> None:
    """Start them, open, and measure."""
    with endpoint() as at:
        os.environ["AZURE_STORAGE_CONNECTION_STRING"] = at.connection_string
        store = "azure:///the-hounds"
        # Each node is a copy of a process that has loaded the toolkit already.
        fork = multiprocessing.get_context("forkserver")
        fork.set_forkserver_preload(["strongroom.coordination"])
        ready: Queue[int] = fork.Queue()
        released: Queue[tuple[float, object]] = fork.Queue()
        nodes = [fork.Process(target=node, args=(store, ready, released)) for _ in range(NODES)]
        for one in nodes:
            one.start()
            ready.get(timeout=60)
        time.sleep(1)
        with coordination.connect(store) as client:
            opened_at = time.time()
            client.gate("go-live").open({"version": 7})
        times = [released.get(timeout=60) for _ in nodes]
        late = [fork.Process(target=node, args=(store, ready, released)) for _ in range(LATE_NODES)]
        for one in late:
            one.start()
        times += [released.get(timeout=60) for _ in late]
        for one in (*nodes, *late):
            one.join()
    assert all(payload == {"version": 7} for _, payload in times)
    waits_ms = [(moment - opened_at) * 1000 for moment, _ in times[:NODES]]
    print(f"{NODES} nodes released, median {statistics.median(waits_ms):.0f} ms after the opening")
    print(f"{LATE_NODES} late nodes found it open")


if __name__ == "__main__":
    main()
