"""Logs whose last commit was torn by a power cut, over any leftovers in the file.

Lives here: the rounds. The short run is in test_log_check.py, the long one in tests/proof.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from strongroom.engines.embedded.log.check import SECTOR_BYTES
from tests.engines.logs import frame_at, judged, log_in

LEFTOVERS: Final = ("nothing", "an older log", "a rollback", "zeros")
_OLDER_COMMITS: Final = (1, 3, 1, 7, 2, 1, 12, 1, 6, 15)
_IMAGES: Final = 4


def tear(directory: Path, leftovers: str, chance: random.Random, rounds: int) -> int:
    """Tear commits, and judge four images of each: none may count as damage.

    Returns: the number of images in which frames were cut.
    """
    cut = 0
    with log_in(directory) as log:
        if leftovers != "an older log":
            log.empty()
        for _ in range(rounds):
            if leftovers == "an older log":
                for rows in _OLDER_COMMITS:
                    log.commit(rows)
                log.restart()
            elif log.frames() > 300:
                log.empty()
            log.commit(chance.randrange(1, 20))
            if leftovers == "a rollback":
                log.roll_back_spilled(chance.randrange(10, 30))
            before = log.bytes() + bytes(64 * 1024 if leftovers == "zeros" else 0)
            kept_frames = log.frames()
            log.commit(chance.randrange(1, 20))
            after = log.bytes().ljust(len(before), b"\0")
            for _ in range(_IMAGES):
                verdict = judged(_torn(before, after, chance))
                assert not verdict.is_lost
                assert verdict.kept_bytes >= frame_at(kept_frames + 1)
                cut += verdict.cut_frames > 0
    return cut


def _torn(before: bytes, after: bytes, chance: random.Random) -> bytes:
    """Return a possible state of the log after a power cut between two of its states."""
    share = chance.choice((0.1, 0.5, 0.9))
    survivor = bytearray(before.ljust(len(after), b"\0"))
    for start in range(0, len(after), SECTOR_BYTES):
        if chance.random() < share:
            survivor[start : start + SECTOR_BYTES] = after[start : start + SECTOR_BYTES]
    return bytes(survivor)
