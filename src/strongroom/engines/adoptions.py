"""Contents that were written and not adopted yet, and the commits that may yet adopt them.

Lives here: which of them a commit may adopt, and when one that was discarded may be deleted: see
rule 7 of base.py. It is for engines whose commits are decided before they happen. Must not live
here: the bodies, or how they are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from strongroom.engines.base import Step

B = TypeVar("B")


class Adoptions(Generic[B]):
    """The contents of one gateway that no commit has adopted.

    Arguments:
        delete: is told which content will be adopted by no commit, once, and what was kept with it.

    Attributes:
        written: the contents by id, with what the engine keeps of each.
    """

    def __init__(self, delete: Callable[[int, B], None]) -> None:
        self._delete = delete
        self.written: dict[int, B] = {}
        # By content, how many undecided commits would adopt it; and which of these were discarded
        # since.
        self._wanted: Counter[int] = Counter()
        self._discarded: set[int] = set()

    def check(self, steps: Sequence[Step]) -> None:
        """Raise ValueError unless every content that the steps adopt is free to be adopted."""
        adopted = [content_id for step in steps for content_id in step.adopt]
        if len(set(adopted)) < len(adopted) or any(one not in self.written for one in adopted):
            raise ValueError("a commit adopts contents that were written and not adopted before")

    def begin(self, content_ids: Iterable[int]) -> None:
        """Keep these contents until `end`: a commit that adopts them will be tried."""
        self._wanted.update(content_ids)

    def end(self, content_ids: Iterable[int]) -> None:
        """Take note that a commit that adopts these contents happened, or never will."""
        for content_id in content_ids:
            self._wanted[content_id] -= 1
            if self._wanted[content_id] <= 0:
                del self._wanted[content_id]
                if content_id in self._discarded:
                    self._discarded.discard(content_id)
                    self.discard(content_id)

    def discard(self, content_id: int) -> None:
        if self._wanted[content_id] > 0:
            self._discarded.add(content_id)
        elif content_id in self.written:
            self._delete(content_id, self.written.pop(content_id))
