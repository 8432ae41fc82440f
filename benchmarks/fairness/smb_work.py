"""Listings and large transfers over SMB, as kinds of long work.

Eight smbclients are the clients. They run at the lowest priority: encryption makes them busy, and
they would otherwise take the cores from the server.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from benchmarks.fairness.file_listings import DIRECTORY
from benchmarks.fairness.kinds import CLIENTS, Kind, Running
from benchmarks.samba import ENCRYPTED, SIGNED

LARGE_BYTES: Final = 32 * 1024 * 1024
# How often one smbclient does the work, so that its logon is a small part.
_LISTINGS: Final = 4
_TRANSFERS: Final = 3
_PREFIX: Final = ("nice", "-n", "19")


def has_smbclient() -> bool:
    """Return whether the client is installed."""
    return shutil.which("smbclient") is not None


def _nothing(_: Running) -> None:
    pass


def _prepare_large(running: Running) -> None:
    large = running.folder / "large"
    large.write_bytes(os.urandom(LARGE_BYTES))
    running.share.run(["put large"], running.folder)


def _commands(
    name: str,
    prepare: Callable[[Running], None],
    commands_of: Callable[[int], Sequence[str]],
    protection: str,
) -> Kind:
    """Return a kind whose clients run smbclient's commands again and again.

    Arguments:
        commands_of: the commands of a client, by its number. Each run of them is an answer.
    """

    def work(running: Running, number: int, until_s: float) -> int:
        count = 0
        while time.monotonic() < until_s:
            running.share.run(commands_of(number), running.folder, protection, _PREFIX)
            count += 1
        return count

    def begin(running: Running, duration_s: float) -> int:
        until_s = time.monotonic() + duration_s
        with ThreadPoolExecutor(CLIENTS) as pool:
            counts = [pool.submit(work, running, number, until_s) for number in range(CLIENTS)]
            return sum(one.result() for one in counts)

    return Kind(f"{name}, {_WORDS[protection]}", prepare, begin)


_WORDS: Final = {ENCRYPTED: "encrypted", SIGNED: "signed"}


def _list(_: int) -> Sequence[str]:
    return [f"cd {DIRECTORY}", *["ls"] * _LISTINGS]


def _search(_: int) -> Sequence[str]:
    return [f"cd {DIRECTORY}", *["ls *9"] * _LISTINGS]


def _read(_: int) -> Sequence[str]:
    return ["get large /dev/null"] * _TRANSFERS


def _write(number: int) -> Sequence[str]:
    return [f"put large large-{number}"] * _TRANSFERS


SMB: Final = tuple(
    kind
    for protection in (ENCRYPTED, SIGNED)
    for kind in (
        _commands("SMB listings of 10,000 files", _nothing, _list, protection),
        _commands("SMB searches of 10,000 names", _nothing, _search, protection),
        _commands("SMB reads of 1 MiB", _prepare_large, _read, protection),
        _commands("SMB writes of 1 MiB", _nothing, _write, protection),
    )
)
