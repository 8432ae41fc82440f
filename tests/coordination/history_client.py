"""One client of a history: it calls a register or a lock again and again, and keeps a journal.

    python -m tests.coordination.history_client KIND URL JOURNAL LABEL SEED KEYS TTL_S STOP_FILE

Lives here: the journal, and the two kinds of clients. Each line of the journal is written at once,
so that a killed client leaves all that it has seen. Positions are times of the monotonic clock,
which all processes of a machine share. Must not live here: faults, judging (histories.py).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from strongroom.coordination import (
    ABSENT,
    Client,
    CoordTimeout,
    OutcomeUnknown,
    StoreUnavailable,
    connect,
)
from strongroom.coordination.recipes.register_core import Swap as Swapped
from strongroom.coordination.recipes.register_core import Versioned
from strongroom.testing.histories.linearizability import NEVER, UNKNOWN, CompletedCall
from tests.coordination.history_models import (
    Acquire,
    Acquired,
    CheckHeld,
    Expire,
    Failed,
    HeldState,
    Put,
    Read,
    ReadResult,
    Release,
    Swap,
    SwapRefused,
    WriteResult,
)

Kind = Literal["register", "lock"]
Stop = Callable[[], bool]
_PAUSE_S: Final = 0.002


class Journal:
    """The calls and results of one client; for one thread, or one thread per object.

    Arguments:
        path: a new file.
        client: the client's name.
    """

    def __init__(self, path: Path, client: str) -> None:
        self._client = client
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        self._numbers = iter(range(sys.maxsize))

    def invoke(self, key: str, call: Hashable) -> int:
        """Record a call before it is sent, and return its number for `returned`."""
        number = next(self._numbers)
        self._write((number, time.monotonic_ns(), self._client, key, call))
        return number

    def returned(self, number: int, result: Hashable) -> None:
        """Record the result of a call."""
        self._write((number, time.monotonic_ns(), result))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, line: tuple[object, ...]) -> None:
        record = pickle.dumps(line)
        os.write(self._file, len(record).to_bytes(4, "big") + record)


def operations_of(paths: Sequence[Path]) -> list[CompletedCall]:
    """Return the operations of some journals, numbered through."""
    found: list[CompletedCall] = []
    for path in paths:
        calls: dict[int, int] = {}
        for number, at, *rest in _records(path.read_bytes()):
            if len(rest) == 3:
                client, key, call = rest
                calls[number] = len(found)
                found.append(CompletedCall(len(found), client, key, call, UNKNOWN, at))
            else:
                before = found[calls[number]]
                found[calls[number]] = CompletedCall(
                    before.number, before.client, before.object_key, before.call, rest[0],
                    before.invoked, at,
                )  # fmt: skip
    return found


def _records(data: bytes) -> Iterator[tuple[int, int, *tuple[Any, ...]]]:
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        record = data[at + 4 : at + 4 + size]
        if len(record) == size:
            yield pickle.loads(record)
        at += 4 + size


def with_expiries(operations: Sequence[CompletedCall]) -> list[CompletedCall]:
    """Add an expiry to the operations of locks for each hold that was not released.

    Such a hold may end at any time after its holder was last seen to hold the lock.
    """
    found = list(operations)
    for taken in operations:
        if not isinstance(taken.result, Acquired):
            continue
        fence, believed = taken.result.fence, taken.returned
        given = False
        for operation in operations:
            if operation.object_key != taken.object_key or operation.result != HeldState(True):
                continue
            given |= operation.call == Release(fence)
            if operation.call == CheckHeld(fence):
                believed = max(believed, operation.returned)
        if not given:
            expire = CompletedCall(
                len(found), "time", taken.object_key, Expire(fence), UNKNOWN, believed + 1, NEVER
            )
            found.append(expire)
    return found


def play_register(
    client: Client, journal: Journal, chance: random.Random, keys: Sequence[str], stop: Stop
) -> None:
    """Read, put and swap the last seen value, until `stop` returns True."""
    label = client.context.label
    registers = {key: client.register(key) for key in keys}
    seen: dict[str, Versioned | None] = dict.fromkeys(keys)
    count = 0
    while not stop():
        key = chance.choice(keys)
        register, last, dice = registers[key], seen[key], chance.random()
        count += 1
        new = f"{label}.{count}"
        if dice < 0.4:
            number = journal.invoke(key, Read())
            with _told(journal, number):
                seen[key] = found = register.get()
                journal.returned(number, _saw(found))
        elif dice < 0.55:
            number = journal.invoke(key, Put(new))
            with _told(journal, number):
                journal.returned(number, WriteResult(register.put(new).version))
        else:
            version = last.version if last is not None and chance.random() < 0.5 else None
            number = journal.invoke(key, Swap(new, last.value if last else None, version))
            with _told(journal, number):
                expected = last.value if last else ABSENT
                swap = register.compare_and_swap(new, expected, version)
                journal.returned(number, _swapped(swap))
                seen[key] = Versioned(new, swap.version) if swap.swapped and swap.version else last
        time.sleep(_PAUSE_S * chance.random())


def _saw(found: Versioned | None) -> ReadResult:
    return ReadResult(None, None) if found is None else ReadResult(found.value, found.version)


def _swapped(swap: Swapped) -> WriteResult | SwapRefused:
    return WriteResult(swap.version) if swap.swapped else SwapRefused(swap.version)


def play_locks(
    client: Client,
    journal: Journal,
    chance: random.Random,
    keys: Sequence[str],
    stop: Stop,
    ttl_s: float,
) -> None:
    """Acquire, hold for a while, and release, until `stop` returns True."""
    while not stop():
        key = chance.choice(keys)
        number = journal.invoke(key, Acquire())
        with _told(journal, number):
            fair = client.promises().fair_queue and chance.random() < 0.2
            held = client.lock(key, ttl=ttl_s, wait=1.0, fair=fair).acquire()
            journal.returned(number, Acquired(held.fence))
            for _ in range(chance.randrange(4)):
                number = journal.invoke(key, CheckHeld(held.fence))
                journal.returned(number, HeldState(held.remaining() > 0))
                time.sleep(5 * _PAUSE_S * chance.random())
            number = journal.invoke(key, Release(held.fence))
            journal.returned(number, HeldState(held.release()))
        time.sleep(_PAUSE_S * chance.random())


@contextlib.contextmanager
def _told(journal: Journal, number: int) -> Iterator[None]:
    """Record the fate of a call that an error reveals."""
    try:
        yield
    except (StoreUnavailable, CoordTimeout):
        journal.returned(number, Failed())
    except OutcomeUnknown:
        pass  # the call may take effect now, later, or never


def main() -> None:
    """Run one client with this process's arguments."""
    kind, url, journal, label, seed, keys, ttl_s, stop_file = sys.argv[1:]
    stop = Path(stop_file).exists
    threading.current_thread().name = label
    with connect(url, label=label) as client:
        log, chance = Journal(Path(journal), label), random.Random(int(seed))
        if kind == "register":
            play_register(client, log, chance, keys.split(","), stop)
        else:
            play_locks(client, log, chance, keys.split(","), stop, float(ttl_s))


if __name__ == "__main__":
    main()
