"""The fixture of the tests of setups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.setup.applied import SetUp


@pytest.fixture
def setup(tmp_path: Path) -> SetUp:
    """A data directory that does not exist yet, and a setup file for it."""
    return SetUp(tmp_path)
