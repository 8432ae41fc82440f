"""Two gateways of one store in processes of their own, and what happens to them.

Lives here: starting, killing, stopping and skewing them. Must not live here: their database, what
clients ask of them (ways.py).
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from strongroom.account_switches import Switches
from strongroom.auth.accounts import development_account
from strongroom.servers.identities.accounts_file import change_accounts
from tests.engines.postgres.patience import until
from tests.proof.gateways.ways import Way
from tests.proof.postgres.gateway import Gateway

_FLAGS: Final = ("--store-mode", "active-active", "--test-clock")
_ACCOUNT: Final = replace(development_account(), switches=Switches(versioning=True))
PROGRAM: Final = (sys.executable, "-m", "strongroom")
_FAKETIME: Final = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def off_by(seconds: int) -> tuple[str, ...]:
    """Return what goes before a command whose wall clock shall be off. It needs Debian's package
    libfaketime.

    The library's repair of waits by the monotonic clock is off, since they are right here. With it,
    threads of Python get the interpreter's lock from each other so late that gateways seem dead.
    """
    assert Path(_FAKETIME).exists(), "install it: apt-get install -y faketime"
    shift = f"FAKETIME={seconds:+d}s"
    monotonic = ("DONT_FAKE_MONOTONIC=1", "FAKETIME_FORCE_MONOTONIC_FIX=0")
    return ("/usr/bin/env", f"LD_PRELOAD={_FAKETIME}", shift, *monotonic)


class Serving:
    """Gateways of one store, which serve beside each other; a context manager that stops them.

    Arguments:
        urls: of the database, one for each gateway.
        folder: for their own files and their logs.
        starts: what is started for each gateway in place of `python -m strongroom`.
        flags: further flags of `serve`.
    """

    def __init__(
        self,
        urls: Sequence[str],
        folder: Path,
        starts: Sequence[Sequence[str]] = (),
        flags: Sequence[str] = (),
    ) -> None:
        self.gateways: list[Gateway] = []
        try:
            for number, url in enumerate(urls):
                start = starts[number] if starts else PROGRAM
                name = f"gateway{number}"
                accounts = folder / f"{name}-accounts.json"
                change_accounts(accounts, lambda _: (_ACCOUNT,))
                given = (*_FLAGS, "--accounts-file", str(accounts), *flags)
                self.gateways.append(Gateway(url, folder, name, flags=given, start=start))
                if not number:
                    # The first one makes the store.
                    until(self.serve, f"it does not serve, see {folder}")
            until(self.serve, f"they do not serve, see {folder}")
        except BaseException:
            self.stop()
            raise

    @property
    def way(self) -> Way:
        """A new way to all of them, with a record of its own."""
        return Way([one.services.port for one in self.gateways])

    def serve(self) -> bool:
        """Whether all of them serve."""
        for one in self.gateways:
            assert one.runs(), f"it has ended: {one.address}"
        return all(one.serves() for one in self.gateways)

    def kill(self, number: int) -> None:
        """End one with SIGKILL."""
        self.gateways[number].stop(signal.SIGKILL)

    def start(self, number: int) -> None:
        """Start one again, and wait until all serve."""
        self.gateways[number].start()
        until(self.serve, "it does not serve again")

    def pause(self, number: int) -> None:
        """Let one stand still with SIGSTOP. Its connections stay open."""
        self.gateways[number].send(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        self.gateways[number].send(signal.SIGCONT)

    def has_ended(self, number: int, within_s: float) -> bool:
        """Whether it ends by itself within some time."""
        end = time.monotonic() + within_s
        while self.gateways[number].runs() and time.monotonic() < end:
            time.sleep(0.05)
        return not self.gateways[number].runs()

    def pass_time(self, seconds: float) -> None:
        """Move store time at all of them."""
        least = self._move(0, 0.0) + seconds
        self._move(0, seconds)
        for number in range(len(self.gateways)):
            # Bound to this turn's values.
            until(
                lambda number=number: self._move(number, 0.0) >= least,  # type: ignore[misc]
                "its store time was not moved",
            )

    def stop(self) -> None:
        for one in self.gateways:
            one.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _move(self, number: int, seconds: float) -> float:
        """Move one gateway's store time; return what it is then, in seconds."""
        connection = self.gateways[number].services.connect()
        try:
            connection.request("POST", "/.strongroom/clock", json.dumps({"advance_s": seconds}))
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            return datetime.fromisoformat(json.loads(body)["store_time"]).timestamp()
        finally:
            connection.close()
