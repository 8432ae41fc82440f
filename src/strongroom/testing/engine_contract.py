"""The contract suite: functions that check what every engine must do.

Lives here: the list of all cases, and `prove`, which runs one. The cases themselves are in the
package `contract`; the contract is in engines/base.py and engines/gateways.py. With pytest:

    @pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case.__name__)
    def test_contract(case, tmp_path):
        asyncio.run(prove(case, MySubject(tmp_path)))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from strongroom.testing.contract import (
    chains,
    contents,
    failures,
    gateways,
    membership,
    records,
    shared,
    waiting,
)
from strongroom.testing.contract.subject import SharedSubject, Subject

__all__ = [
    "CONTRACT",
    "SHARED_CONTRACT",
    "STOPPING_CONTRACT",
    "Case",
    "SharedCase",
    "SharedSubject",
    "Subject",
    "prove",
]

S = TypeVar("S", bound=Subject)

Case = Callable[[Subject], Awaitable[None]]

CONTRACT: Final[tuple[Case, ...]] = (
    *records.CASES,
    *chains.CASES,
    *waiting.CASES,
    *contents.CASES,
    *failures.CASES,
    *gateways.CASES,
)
STOPPING_CONTRACT: Final[tuple[Case, ...]] = failures.STOPPING_CASES
"""The cases for engines that stop when the outcome of a commit is unknown. An engine of one process
cannot ask another one for the outcome."""


SharedCase = Callable[[SharedSubject], Awaitable[None]]
SHARED_CONTRACT: Final[tuple[SharedCase, ...]] = (
    *shared.CASES,
    *membership.CASES,
)
"""The cases for engines that several gateways serve."""


async def prove(case: Callable[[S], Awaitable[None]], subject: S) -> None:
    """Run one case. Raises AssertionError if the engine breaks the contract."""
    await subject.start()
    try:
        await case(subject)
    finally:
        await subject.stop()
