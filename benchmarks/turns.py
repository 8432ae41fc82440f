"""The turns of a comparison: the servers run one after the other, repeatedly.

A shared machine is slow for seconds at a time, so only measurements close in time can be compared.
Hence there are many short turns, and the ratio of each pair of them (`results.ratio_of`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Turns:
    """How long a server runs at a time, how often, and how long it warms up before the first time.
    After the warm-up its engine has compiled its hot code."""

    slice_s: float
    count: int
    warm_up_s: float

    def of(self, servers: Sequence[S]) -> Iterator[S]:
        """Yield each server once per turn; the order is reversed from turn to turn."""
        for number in range(self.count):
            yield from servers if number % 2 == 0 else servers[::-1]
