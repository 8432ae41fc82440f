"""Whose turn it is: servers that are compared run one after the other, over and over.

A machine that others share is slow for seconds at a time, so that only what stands side by side in
time can be compared: many short turns, and the ratio of each pair of them (`results.ratio_of`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Turns:
    """How long a server runs at a time, how often, and how long before the first time: what its
    engine compiles while it runs, it has compiled then."""

    slice_s: float
    count: int
    warm_up_s: float

    def of(self, servers: Sequence[S]) -> Iterator[S]:
        """The servers, each once a turn: who was first in one is last in the next."""
        for number in range(self.count):
            yield from servers if number % 2 == 0 else servers[::-1]
