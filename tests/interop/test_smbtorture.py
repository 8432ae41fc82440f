"""The quick and steady part of smbtorture's gate; `make proof` runs all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.tools import require_tool
from tests.smbtorture import gate, names
from tests.smbtorture.running import run_tests
from tests.smbtorture.targets import Target, strongroom

SUBSET = names.load("subset")
SUITES = list(dict.fromkeys(map(names.suite_of, SUBSET)))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server for all suites; when they are over, it must have had no error of its own."""
    require_tool("smbtorture")
    with strongroom(tmp_path_factory.mktemp("served"), encrypted=False) as serving:
        yield serving


# Many tests follow each other in one of these; none of them waits for long.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_of_the_subset_passes(target: Target, suite: str, tmp_path: Path) -> None:
    chosen = [name for name in SUBSET if names.suite_of(name) == suite]
    results = run_tests(target, chosen, tmp_path, encrypted=False, again=chosen)
    found = gate.complaints(results, ())
    assert not found, "\n".join(found)
