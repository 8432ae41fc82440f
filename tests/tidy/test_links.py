"""Every page is reachable from the README by links, and every link has a target."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.tidy.rules_links import Pages, broken_links, unreached_pages
from tests.tidy.sources import ROOT, pictures, text_files

# Pages in a folder of tests are for its developers.
PAGES: Pages = {
    path: text
    for path, text in text_files().items()
    if path.suffix == ".md" and path.parts[0] != "tests"
}


def made(**pages: str) -> Pages:
    """Pages by their paths, `_` for a slash."""
    return {PurePosixPath(f"{name.replace('_', '/')}.md"): text for name, text in pages.items()}


def test_every_link_leads_somewhere() -> None:
    files = {*text_files(), *pictures()}
    folders = {parent for path in files for parent in path.parents}
    assert broken_links(PAGES, files | folders) == []


def test_every_page_is_reached() -> None:
    assert PurePosixPath("docs/operating.md") in PAGES
    assert unreached_pages(PAGES) == []


@pytest.mark.parametrize(
    "link", ["docs/none.md", "docs/a.md#none", "#none", "../README.md", "docs/a.md#in-code"]
)
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    pages = made(README=f"[x]({link})\n", docs_a="# A\n\n```\n# in code\n```\n")
    assert len(broken_links(pages, {*pages, PurePosixPath("docs")})) == 1


@pytest.mark.parametrize(
    "link",
    ["docs/a.md", "docs/a.md#a-word-of-two", "docs", "docs/", "https://example.org/x", "#start"],
)
def test_a_link_that_leads_somewhere_is_not(link: str) -> None:
    pages = made(README=f"# Start\n[x]({link}) `[y](none.md)`\n", docs_a="## A word, of `two`\n")
    assert broken_links(pages, {*pages, PurePosixPath("docs")}) == []


def test_a_page_that_nobody_links_is_found() -> None:
    pages = made(README="[a](docs/a.md)", docs_a="[b](b.md)", docs_b="", docs_c="[c](c.md)")
    assert unreached_pages(pages) == ["docs/c.md: no page links to it"]


def test_a_link_to_a_folder_is_one_to_its_readme() -> None:
    pages = made(README="[a](docs/)", docs_README="[b](b.md)", docs_b="")
    assert unreached_pages(pages) == []


def test_the_readme_is_where_it_starts() -> None:
    assert (ROOT / "README.md").is_file()
