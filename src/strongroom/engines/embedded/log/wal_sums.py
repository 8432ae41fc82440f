"""The checksum of SQLite's write-ahead log, fast enough to check a whole log at each start.

Lives here: the arithmetic. Must not live here: which bytes are summed (wal_format.py). Source:
"WAL-mode File Format" of SQLite's documentation, section "Checksum Algorithm".

    for each pair of words a, b:  first += a + second;  second += b + first      (modulo 2^32)

So a word with n words after it counts F(n + 1) times in `second` and F(n) times in `first`. F are
the Fibonacci numbers: F(0) = 0, F(1) = 1. Summing word by word takes Python a quarter of a
millisecond for a page of 8 KiB. But F(n + m) = F(n) F(m + 1) + F(n - 1) F(m). So a word can be
moved m words towards the end. F(m + 1) times the word is added there, and F(m) times the word is
added one place further.

A page is therefore cut into rows, all rows are moved onto the last one, and only that row is summed
word by word. A row is moved by one multiplication, as one long number. Each multiplication takes
every third word only, so that no product overflows into the next.
"""

from __future__ import annotations

import functools
import struct
from array import array
from typing import Final, Literal, NamedTuple

WORD_BYTES: Final = 4
WORD_MASK: Final = 0xFFFFFFFF
_WORD_BITS: Final = 32
_ROWS: Final = 8
_APART: Final = 3
# Below this size, to move rows takes longer than to sum them.
_FOLDED_BYTES_MIN: Final = 4096

Order = Literal["<", ">"]
"""How the checksum reads its words: "<" little-endian, ">" big-endian."""

Sum = tuple[int, int]
"""A checksum: (first, second)."""

_PAIRS: Final = struct.Struct("<2I")
_EIGHTS: Final = struct.Struct("<8I")


def wal_checksum(order: Order, seed: Sum, data: bytes) -> Sum:
    """Return the checksum of `data`, whose length is a multiple of 8, that starts from `seed`."""
    if order == ">":
        words = array("I", data)
        words.byteswap()
        data = words.tobytes()
    if len(data) < _FOLDED_BYTES_MIN or len(data) % (_ROWS * _EIGHTS.size):
        return _one_by_one(seed, data)
    return _folded(seed, data)


def _one_by_one(seed: Sum, data: bytes) -> Sum:
    first, second = seed
    long_bytes = len(data) - len(data) % _EIGHTS.size
    # Sum eight words at a time, and reduce once.
    for a, b, c, d, e, f, g, h in _EIGHTS.iter_unpack(data[:long_bytes]):
        first += a + second
        second += b + first
        first += c + second
        second += d + first
        first += e + second
        second += f + first
        first = (first + g + second) & WORD_MASK
        second = (second + h + first) & WORD_MASK
    for a, b in _PAIRS.iter_unpack(data[long_bytes:]):
        first = (first + a + second) & WORD_MASK
        second = (second + b + first) & WORD_MASK
    return first, second


class _Plan(NamedTuple):
    """The constants for folding data of one length.

    `weights`: (F(m + 1), F(m)) of each row but the last, for its distance m from the last.
    `masks`: every third word, starting at the first, second and third word.
    """

    row_bytes: int
    weights: tuple[Sum, ...]
    masks: tuple[int, ...]


@functools.lru_cache(maxsize=8)
def _plan(size_bytes: int) -> _Plan:
    row_bytes = size_bytes // _ROWS
    row_words = row_bytes // WORD_BYTES
    fibonacci = [0, 1]
    while len(fibonacci) <= _ROWS * row_words:
        fibonacci.append((fibonacci[-1] + fibonacci[-2]) & WORD_MASK)
    distances = [row * row_words for row in range(_ROWS - 1, 0, -1)]
    weights = tuple((fibonacci[distance + 1], fibonacci[distance]) for distance in distances)
    masks = tuple(
        sum(WORD_MASK << _WORD_BITS * word for word in range(start, row_words + 1, _APART))
        for start in range(_APART)
    )
    return _Plan(row_bytes, weights, masks)


def _folded(seed: Sum, data: bytes) -> Sum:
    row_bytes, weights, masks = _plan(len(data))
    moved = [0] * _APART
    further = [0] * _APART
    for number, (here, next_to_it) in enumerate(weights):
        row = int.from_bytes(data[number * row_bytes : (number + 1) * row_bytes], "little")
        for start, mask in enumerate(masks):
            words = row & mask
            moved[start] += words * here
            further[start] += words * next_to_it
    last = int.from_bytes(data[-row_bytes:], "little")
    folded = 0
    for start, mask in enumerate(masks):
        words = (last & mask) + moved[start] + (further[start - 1] << _WORD_BITS)
        folded |= words & mask
    first, second = seed
    here, next_to_it = weights[0]
    # The seed is moved like a row: `second` acts as the word just before the row, `first` as the
    # word before that one.
    seed = (
        (next_to_it * second + (here - next_to_it) * first) & WORD_MASK,
        (here * second + next_to_it * first) & WORD_MASK,
    )
    text = folded.to_bytes(row_bytes + WORD_BYTES, "little")
    first, second = _one_by_one(seed, text[:row_bytes])
    # Words moved one place beyond the last word count in `first` only.
    return (first + int.from_bytes(text[row_bytes:], "little")) & WORD_MASK, second
