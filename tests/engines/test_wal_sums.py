"""The folded checksum of a log equals the one that SQLite's documentation defines."""

from __future__ import annotations

import random
import struct

import pytest

from strongroom.engines.embedded.log.wal_sums import Order, Sum, wal_checksum


def _defined(order: Order, seed: Sum, data: bytes) -> Sum:
    first, second = seed
    for a, b in struct.iter_unpack(f"{order}2I", data):
        first = (first + a + second) % 2**32
        second = (second + b + first) % 2**32
    return first, second


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("size_bytes", [0, 8, 24, 512, 4088, 4096, 4104, 8192, 32768, 65536])
def test_the_sum_is_as_defined(order: Order, size_bytes: int) -> None:
    chance = random.Random(size_bytes)
    most = 2**32 - 1
    for seed in ((0, 0), (most, most), (chance.getrandbits(32), chance.getrandbits(32))):
        for data in (chance.randbytes(size_bytes), b"\xff" * size_bytes, bytes(size_bytes)):
            assert wal_checksum(order, seed, data) == _defined(order, seed, data)
