"""The passes of the garbage collector in a served process are short."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from strongroom.cli.serving.until_signal import GC_THRESHOLDS

_OBJECTS_MAX = 6_000


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Set the thresholds of a served process until the end of the test."""
    before = gc.get_threshold()
    gc.enable()  # a command that failed within this process may have left it off
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("thresholds")
def test_a_pass_of_a_young_generation_looks_at_few_objects() -> None:
    """As many objects live as those of eight large batches."""
    looked_at: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] < 2:
            generations = range(info["generation"] + 1)
            looked_at.append(sum(len(gc.get_objects(one)) for one in generations))

    gc.collect()  # objects of tests before it may wait here for a pass
    gc.callbacks.append(count)
    try:
        living = [[number] for number in range(100_000)]
    finally:
        gc.callbacks.remove(count)
    assert len(living) == 100_000
    assert looked_at and max(looked_at) <= _OBJECTS_MAX
