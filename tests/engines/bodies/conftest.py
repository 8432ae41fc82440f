"""A pool in memory, for tests of pools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.bodies.fake_librados import FakeCeph
from tests.engines.bodies.places import TriedFake


@pytest.fixture
def ceph() -> Iterator[FakeCeph]:
    """A cluster in memory, instead of Ceph's library."""
    fake = FakeCeph()
    with fake.installed():
        yield fake


@pytest.fixture
def place(ceph: FakeCeph, tmp_path: Path) -> TriedFake:
    """An empty pool of it."""
    return TriedFake(ceph, tmp_path)
