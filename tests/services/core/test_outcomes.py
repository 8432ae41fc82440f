"""The errors of a caller when the engine is broken, full, or busy."""

from __future__ import annotations

import pytest

from strongroom.engines.base import Busy, CommitUnknown, EngineError, Full, Unavailable
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode
from strongroom.services.core.outcomes import refusal_of


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (Full(), errors.INSUFFICIENT_STORAGE),
        (Busy("too many open files"), errors.SERVER_BUSY),
        (Unavailable("stopped"), errors.INTERNAL_ERROR),
        (CommitUnknown("perhaps"), errors.INTERNAL_ERROR),
    ],
)
def test_each_has_its_refusal(error: EngineError, row: ErrorCode) -> None:
    assert refusal_of(error).row is row
