"""What a release relies on: one version in every place, and workflows whose actions are pinned."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from strongroom import __version__
from tests.tidy.sources import ROOT

_HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
_USES = re.compile(r"^\s*(?:- )?uses: (\S+)(.*)$", re.MULTILINE)
_PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")
_MAKE = re.compile(r"\bmake ([a-z]+)")

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _unpinned(workflow: str) -> list[str]:
    """Return each action that is not named by a commit, with the version as a comment."""
    return [
        action + comment
        for action, comment in _USES.findall(workflow)
        if not _PINNED.fullmatch(action) or not re.fullmatch(r" # v\d+(\.\d+)+", comment)
    ]


def test_the_changelog_has_the_version_below_what_is_unreleased() -> None:
    headings = _HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert headings[0] == ("Unreleased", "")
    version, date = headings[1]
    assert version == __version__
    assert date


def _other_versions(pyproject: str) -> list[str]:
    """Return what a distribution beside Strongroom says of a version that is not Strongroom's."""
    project = tomllib.loads(pyproject)["project"]
    needed = [one for one in project["dependencies"] if re.match(r"strongroom\b(?!-)", one)]
    found = [f"version {project['version']}"] if project["version"] != __version__ else []
    return found + ([f"needs {needed}"] if needed != [f"strongroom=={__version__}"] else [])


def test_distributions_beside_it_are_of_the_same_version() -> None:
    for path in sorted((ROOT / "distributions").glob("*/pyproject.toml")):
        assert _other_versions(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    ("version", "needed", "found"),
    [
        (__version__, f"strongroom=={__version__}", 0),
        ("0.0.1", f"strongroom=={__version__}", 1),
        (__version__, f"strongroom>={__version__}", 1),
        ("0.0.1", "strongroom-other==0.0.1", 2),
    ],
)
def test_another_version_of_a_distribution_is_found(version: str, needed: str, found: int) -> None:
    text = f'[project]\nversion = "{version}"\ndependencies = ["{needed}"]\n'
    assert len(_other_versions(text)) == found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_actions_by_commit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert _USES.search(text)
    assert _unpinned(text) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_right_that_it_does_not_name(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\npermissions: {}\n") == 1
    assert "secrets." not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_that_there_are(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert set(_MAKE.findall(path.read_text(encoding="utf-8"))) <= targets


@pytest.mark.parametrize(
    "uses", ["some/action@v4", "some/action@main", f"some/action@{'a' * 40}", "./local # v1.0"]
)
def test_an_action_without_a_commit_or_a_version_is_found(uses: str) -> None:
    assert _unpinned(f"      - uses: {uses}\n") == [uses]
    assert _unpinned(f"      - uses: some/action@{'a' * 40} # v1.2.3\n") == []


def test_there_are_workflows() -> None:
    assert {"ci.yml", "release.yml"} <= {path.name for path in WORKFLOWS}
