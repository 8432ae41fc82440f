"""Thread pools whose threads run from the beginning.

Lives here: how such a pool is made. Must not live here: what runs on it. A pool usually starts a
thread when work comes. Where memory or processes are limited, that start fails in the middle of a
request, with its work queued all the same; or the thread ends before it tells that it runs, and
whoever starts it waits for ever, here the event loop.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """A pool with all of its threads.

    Arguments:
        threads: how many.
        name: what their names begin with.

    Raises: RuntimeError: the system does not allow so many.
    """
    pool = ThreadPoolExecutor(threads, name)
    all_run = threading.Barrier(threads)
    try:
        # Each waits for the others, so that none is there for the work of two.
        for _ in range(threads):
            pool.submit(all_run.wait)
    except RuntimeError:
        all_run.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return pool
