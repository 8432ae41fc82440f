"""What makes a site of the pages: its check finds what is wrong, its links show titles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.check import complaints
from docs.site.hooks import titles_of, with_file_names, with_titles
from tests.tidy.sources import ROOT, text_files

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def site(folder: Path, page: str) -> Path:
    """A site of three pages, of which one is given."""
    for name in ("search/search_index.js", "docs/index.html", "index.html"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    (folder / "page.html").write_text(page)
    return folder


def test_a_site_that_can_be_read_from_a_disk_passes(tmp_path: Path) -> None:
    page = (
        '<a href="docs/index.html#one">a</a><a href="https://example.org/">b</a><a href="#x">c</a>'
        '<picture><source srcset="index.html"><img src="page.html"></picture>'
    )
    assert list(complaints(site(tmp_path, page))) == []


@pytest.mark.parametrize(
    "page",
    [
        '<a href="docs/">a folder shows its files</a>',
        '<a href="missing.html">nothing</a>',
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<img src="https://example.org/a.png">',
        '<source srcset="page.html 1x, https://example.org/a.png 2x">',
        '<img src="missing.webp">',
        '<source srcset="missing.webp">',
    ],
)
def test_a_page_that_cannot_is_named(tmp_path: Path, page: str) -> None:
    [complaint] = complaints(site(tmp_path, page))
    assert complaint.startswith("page.html: ")


def test_a_style_of_another_site_and_a_missing_index_are_named(tmp_path: Path) -> None:
    built = site(tmp_path, "")
    (built / "a.css").write_text('@import url("https://example.org/font.css");')
    (built / "search/search_index.js").unlink()
    assert len(list(complaints(built))) == 2


def test_links_show_titles_in_place_of_names_of_files() -> None:
    titles = titles_of({"docs/lock.md": "# Locks\n", "docs/a/README.md": "# All of a\n"})
    text = "See [lock.md](../lock.md#ttl), [the page](../lock.md), [x.md](x.md).\n"
    said = "See [Locks](../lock.md#ttl), [the page](../lock.md), [x.md](x.md).\n"
    assert with_titles(text, "docs/a/README.md", titles) == said
    code = "```\n[lock.md](../lock.md)\n```\n"
    assert with_titles(code, "docs/a/README.md", titles) == code


def test_every_page_has_a_place_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [str(path) for path in text_files() if path.suffix == ".md" and path.parts[0] == "docs"]
    assert len(pages) > 70
    assert [page for page in pages if not re.search(rf"[ \[]{re.escape(page)}$", nav, re.M)] == []


def test_no_asterisk_outside_of_code_is_taken_for_emphasis() -> None:
    found = [
        f"{path}: {line}"
        for path, text in text_files().items()
        if path.suffix == ".md"
        for line in _CODE.sub("", text).splitlines()
        if re.search(r"\w-\*(?!\*)", line)
    ]
    assert found == []


def test_a_block_of_a_file_has_its_path_as_title_and_ends_where_it_ends() -> None:
    """MkDocs takes no path with a slash after the language, and all that follows for code."""
    text = "```ini /etc/x/store.conf\n[Unit]\n```\n\n### After\n\n```sh\nls /etc\n```\n"
    titled = text.replace("ini /etc/x/store.conf", 'ini title="/etc/x/store.conf"', 1)
    assert with_file_names(text) == titled
