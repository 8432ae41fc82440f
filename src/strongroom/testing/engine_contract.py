"""The contract suite: functions that check what every engine must do.

Lives here: the list of all cases, and `prove`, which runs one. The cases themselves are in the
modules contract_*.py; the contract is in engines/base.py and engines/gateways.py. With pytest:

    @pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case.__name__)
    def test_contract(case, tmp_path):
        asyncio.run(prove(case, MySubject(tmp_path)))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from strongroom.testing import (
    contract_contents,
    contract_failures,
    contract_gateways,
    contract_membership,
    contract_records,
    contract_shared,
    contract_waiting,
)
from strongroom.testing.contract_subject import SharedSubject, Subject

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
    *contract_records.CASES,
    *contract_waiting.CASES,
    *contract_contents.CASES,
    *contract_failures.CASES,
    *contract_gateways.CASES,
)
STOPPING_CONTRACT: Final[tuple[Case, ...]] = contract_failures.STOPPING_CASES
"""For engines that have nobody to ask what became of a commit, such as those in one process."""


SharedCase = Callable[[SharedSubject], Awaitable[None]]
SHARED_CONTRACT: Final[tuple[SharedCase, ...]] = (
    *contract_shared.CASES,
    *contract_membership.CASES,
)
"""For engines that several gateways serve."""


async def prove(case: Callable[[S], Awaitable[None]], subject: S) -> None:
    """Run one case. Raises AssertionError if the engine breaks the contract."""
    await subject.start()
    try:
        await case(subject)
    finally:
        await subject.stop()
