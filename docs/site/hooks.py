"""What the site adds to the pages: a link that shows a file's name shows the page's title instead,
and the name of a file stands above its text.

Lives here: hooks of MkDocs. Must not live here: text; the pages are read on other sites too, where
a file's name is what readers look for.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any

_LINK = re.compile(
    r"\[`?(?P<shown>[\w./-]+(?:\.md|/))`?\]\((?P<target>[\w./-]+)(?P<anchor>#[\w-]+)?\)"
)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# MkDocs takes no path after the language: the block would end where it begins.
_FILE = re.compile(r"^```(?P<language>\w+) (?P<path>[\w./-]+)$", re.MULTILINE)


def titles_of(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the first heading of each page, by its path."""
    found = {path: _TITLE.search(text) for path, text in pages.items()}
    return {path: match[1].strip() for path, match in found.items() if match}


def with_titles(text: str, page: str, titles: Mapping[str, str]) -> str:
    """Return a page whose links show titles where they showed the names of files.

    Arguments:
        page: its path.
        titles: of all pages, by their paths.
    """

    def titled(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link["target"]))
        title = titles.get(target)
        if title is None:
            return link[0]
        return f"[{title}]({link['target']}{link['anchor'] or ''})"

    parts = _FENCED.split(text)
    return "".join(one if one.startswith("```") else _LINK.sub(titled, one) for one in parts)


def with_file_names(text: str) -> str:
    """Return a page whose blocks of a file's text have its path as their title."""
    return _FILE.sub(r'```\g<language> title="\g<path>"', text)


# What readers look for most comes first among what a search finds, transcripts come last.
_BOOSTS = {"docs/errors.md": 4, "docs/start/": 2, "docs/operations/": 0.5, "docs/decisions/": 0.5}

_titles: dict[str, str] = {}


def on_files(files: Iterable[Any], config: Any) -> None:
    """Read the titles of all pages."""
    pages = {one.src_uri: one.content_string for one in files if one.src_uri.endswith(".md")}
    _titles.update(titles_of(pages))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let a page show titles and names of files, and say how early it is found by a search."""
    for start, boost in _BOOSTS.items():
        if page.file.src_uri.startswith(start):
            page.meta.setdefault("search", {"boost": boost})
    return with_file_names(with_titles(markdown, page.file.src_uri, _titles))
