"""Threads and thread pools that start at once, or say that memory is short.

Lives here: how they are started. A pool usually starts a thread when the first work arrives. When
memory or processes are limited, that start may fail in the middle of a request, although its work
is queued. Or the new thread dies before it signals that it runs. Then the thread that started it
(here the event loop) waits for ever.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises MemoryError as `started_pool` does."""
    try:
        thread.start()
    except RuntimeError as error:
        raise MemoryError(str(error)) from error


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads are all running.

    Arguments:
        threads: their number.
        name: the prefix of their names.

    Raises: MemoryError: there is no memory for so many threads, or the system allows no more.
    Python does not say which: it raises RuntimeError for both.
    """
    pool = ThreadPoolExecutor(threads, name)
    all_run = threading.Barrier(threads)
    try:
        # Each job waits for all the others, so no thread can run two of them.
        for _ in range(threads):
            pool.submit(all_run.wait)
    except BaseException as error:
        # Whatever ended the start: threads that wait for the others would keep the program alive.
        all_run.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, RuntimeError):
            raise MemoryError(str(error)) from error
        raise
    return pool
