"""The whole gate of smbtorture, with signed sessions and with encrypted ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.smbtorture import gate, names
from tests.smbtorture.running import run_tests
from tests.smbtorture.targets import Target, strongroom

GATE = names.load("gate")
SIGNED_ONLY = names.load("signed")
MISSES = names.load("misses")
SUITES = list(dict.fromkeys(map(names.suite_of, GATE)))


@pytest.fixture(scope="module", params=[False, True], ids=["signed", "encrypted"])
def encrypted(request: pytest.FixtureRequest) -> bool:
    """Whether each session is encrypted."""
    return bool(request.param)


@pytest.fixture(scope="module")
def target(encrypted: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server for all suites; when they are over, it must have had no error of its own."""
    with strongroom(tmp_path_factory.mktemp("served"), encrypted=encrypted) as serving:
        yield serving


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_but_for_its_known_misses(
    target: Target, encrypted: bool, suite: str, tmp_path: Path
) -> None:
    of_suite = [name for name in GATE if names.suite_of(name) == suite]
    chosen = gate.to_run(of_suite, SIGNED_ONLY, encrypted=encrypted)
    again = [name for name in chosen if name not in MISSES]
    results = run_tests(target, chosen, tmp_path, encrypted=encrypted, again=again)
    found = gate.complaints(results, MISSES)
    assert not found, "\n".join(found)
