"""A gateway in a process of its own, under load or with one commit that comes late.

    python -m tests.engines.postgres.gateway_process URL SCHEMA load|late NAME

It prints a line for each thing that it did, as JSON. Lives here: the process, and its side as the
tests see it. Must not live here: what is expected of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import msgspec

from strongroom.clock import SystemClock
from strongroom.engines.base import CommitUnknown, Unavailable
from strongroom.engines.postgres.assembly import PostgresOptions, open_store
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.contract.subject import face, put
from tests.engines.postgres.load import Load, Receipt
from tests.engines.postgres.patience import PATIENCE_S, soon

LATE: Final = face(b"late", b"late")


async def serving(url: str, schema: str, connections: int = 4) -> PostgresEngine:
    """Open a store that follows the database's time, and sends heartbeats."""
    options = PostgresOptions(connections=connections, schema=schema)
    return await open_store(url, SystemClock(), options)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def _load(store: PostgresEngine, name: str) -> None:
    """Increment until there is no more input, and say each increment that was acknowledged."""
    load = Load(lambda: [store], writers=6, name=name)
    load.on_receipt = lambda receipt: _say(receipt=msgspec.to_builtins(receipt))
    await asyncio.to_thread(sys.stdin.read)
    await load.stop()


async def _late(store: PostgresEngine, name: str) -> None:
    """Stop this process between the decision of a commit and the commit."""
    await put(store, (face(b"early", b"late"), name.encode()))

    async def stop_itself() -> None:
        store.before_commit = None
        os.kill(os.getpid(), signal.SIGSTOP)

    store.before_commit = stop_itself
    try:
        stamp = await put(store, (LATE, name.encode()))
    except (Unavailable, CommitUnknown) as error:  # unknown: it stood still for too long to say
        _say(refused=str(error))
    else:
        _say(acknowledged=stamp)


async def main(url: str, schema: str, work: str, name: str) -> None:
    store = await serving(url, schema)
    store.on_fatal(lambda error: _say(fatal=str(error)))
    _say(number=store.gateways.number, incarnation=store.gateways.incarnation)
    await (_load if work == "load" else _late)(store, name)
    await store.close()


class GatewayProcess:
    """Such a process; `stop` and `resume` are SIGSTOP and SIGCONT.

    Arguments:
        url: of the database.
        work: "load" or "late".
        name: of its receipts, or of what it writes late.
        folder: for what it complains about.

    Attributes:
        said: the lines that it has printed so far.
    """

    def __init__(self, url: str, schema: str, work: str, name: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.engines.postgres.gateway_process"]
        self._errors = folder / f"{name}.log"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, url, schema, work, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self.said: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def receipts(self) -> list[Receipt]:
        """The increments that it said were acknowledged."""
        found = [one["receipt"] for one in self.said if "receipt" in one]
        return [msgspec.convert(one, Receipt) for one in found]

    async def says(self, word: str) -> Any:
        """Return what it says under a word, as soon as it does."""
        complaint = f"it does not say {word}, see {self._errors}"
        await soon(lambda: any(word in line for line in self.said), complaint)
        return next(line[word] for line in self.said if word in line)

    async def is_stopped(self) -> None:
        """Return once a signal has stopped it."""
        complaint = f"it does not stop, see {self._errors}"
        await soon(lambda: _state(self._process.pid) == "T", complaint)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    async def end(self) -> None:
        """Let it end by itself, in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = await asyncio.to_thread(self._process.wait, PATIENCE_S)
        await asyncio.to_thread(self._reader.join)
        assert code == 0, f"it ended with {code}: {self._errors.read_text()}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(json.loads(line))


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
