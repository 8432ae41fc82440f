"""A folder and a pool keep the contract of places. The pool is one in memory, behind the functions
of Ceph's library; tests/proof/ceph has a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.bodies.contract import CONTRACT, TriedPlace
from tests.engines.bodies.fake_librados import FakeCeph
from tests.engines.bodies.places import TriedFake, TriedFolder


@pytest.fixture(params=["folder", "pool"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TriedPlace]:
    """A place of each kind, new."""
    if request.param == "folder":
        yield TriedFolder(tmp_path)
        return
    ceph = FakeCeph()
    with ceph.installed():
        yield TriedFake(ceph, tmp_path)


@pytest.mark.parametrize("case", CONTRACT)
def test_a_place_keeps_the_contract(place: TriedPlace, case: str) -> None:
    asyncio.run(CONTRACT[case](place))
