"""The pages for those who carry on name files, tests and code that exist.

What these pages let a reader run is run by tests/pages.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.sources import PACKAGE, ROOT, text_files

PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "debugging.md",
    *sorted((ROOT / "docs" / "contributing").glob("*.md")),
]
_PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.(?:py|md|toml))?)`")
_CONSTANT = re.compile(r"`(_?[A-Z][A-Z0-9_]{4,})`")
_TEST = re.compile(r"(tests/\S+\.py)::(\w+)")
# Folders that a reader makes, or that a command writes.
_MADE = ("build/", "dist/")


@cache
def _there() -> tuple[str, ...]:
    """Files of the repository and their folders; one that is empty but for caches is gone."""
    files = text_files()
    folders = {folder for file in files for folder in file.parents}
    return tuple(f"/{path}/" for path in {*files, *folders})


def _exists(path: str) -> bool:
    """Whether it lies in the repository, or somewhere in the package, from some folder on."""
    ends = f"/{path.rstrip('/')}/"
    package = f"/{PACKAGE}/"
    return any(one == ends or (one.startswith(package) and one.endswith(ends)) for one in _there())


def _named(text: str) -> set[str]:
    return {
        path
        for path in _PATH.findall(text)
        if not path.startswith(_MADE) and not re.search(r"\bNAME\b", path)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_file_that_a_page_names_exists(page: Path) -> None:
    named = _named(page.read_text(encoding="utf-8"))
    assert named
    gone = [f"{page.name} names {one}, which is not there" for one in named if not _exists(one)]
    assert not gone, "\n" + "\n".join(sorted(gone))


def test_each_constant_that_a_how_to_names_exists() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("src/**/*.py"))
    code += "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    for page in PAGES[2:]:
        for name in _CONSTANT.findall(page.read_text(encoding="utf-8")):
            assert re.search(rf"\b{name}\b", code), (page.name, name)


def test_each_test_that_a_page_names_exists() -> None:
    found = [one for page in PAGES for one in _TEST.findall(page.read_text(encoding="utf-8"))]
    assert found
    for path, name in found:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_a_file_that_is_gone_is_noticed() -> None:
    assert _named("see `services/file/gone.py` and `tests/trace/`") == {
        "services/file/gone.py",
        "tests/trace/",
    }
    assert not _exists("services/file/gone.py") and _exists("services/file/rest/files.py")


def test_the_decisions_come_in_one_order() -> None:
    """In ARCHITECTURE.md, in their own overview, and in the site's navigation."""
    _, _, section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Decisions")
    architecture = re.findall(r"^- \[.*\]\(docs/decisions/([\w-]+)\.md\)", section, re.M)
    folder = ROOT / "docs" / "decisions"
    overview = (folder / "README.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert {path.stem for path in folder.glob("*.md")} == {*architecture, "README"}
    assert re.findall(r"^- \[.*\]\(([\w-]+)\.md\)", overview, re.M) == architecture
    assert re.findall(r"- docs/decisions/([\w-]+)\.md$", navigation, re.M) == architecture
    assert len(section.partition("### By subject")[0].split("\n- [")) == 1 + 6
