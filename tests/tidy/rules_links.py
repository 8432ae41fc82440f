"""Links between pages: each link has a target, and each page is reachable.

Lives here: the rules, over the texts of pages by their paths. Must not live here: the list of pages
(sources.py). A link to a folder means its README.md. Links to other sites are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

Pages = Mapping[PurePosixPath, str]
START = PurePosixPath("README.md")
_CODE = re.compile(r"^\s*```.*?^\s*```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _links(text: str) -> Iterator[str]:
    for target in _LINK.findall(_CODE.sub("`", text)):
        if not _ELSEWHERE.match(target):
            yield target


def _path(page: PurePosixPath, target: str) -> PurePosixPath:
    """Return the target of a link on `page`, from the root of the repository."""
    if not target:
        return page
    parts: list[str] = []
    for part in (page.parent / target).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return PurePosixPath("..")
    return PurePosixPath(*parts)


def _anchors(text: str) -> set[str]:
    """Return the fragments of a page's headings, as sites that render Markdown make them."""
    headings = _HEADING.findall(_FENCED.sub("", text))
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in kept}


def broken_links(pages: Pages, paths: Collection[PurePosixPath]) -> list[str]:
    """Return a complaint for each link without a file, folder or heading as its target.

    Arguments:
        paths: all files and folders of the project.
    """
    found = []
    for page, text in pages.items():
        for link in _links(text):
            target, _, anchor = link.partition("#")
            path = _path(page, target)
            is_missing = path not in paths
            if not is_missing and anchor and path in pages:
                is_missing = anchor not in _anchors(pages[path])
            found += [f"{page}: the link {link} leads nowhere"] if is_missing else []
    return found


def unreached_pages(pages: Pages) -> list[str]:
    """Return a complaint for each page that no chain of links from the README reaches."""
    reached, following = {START}, [START]
    while following:
        page = following.pop()
        for link in _links(pages[page]):
            path = _path(page, link.partition("#")[0])
            path = path / "README.md" if path / "README.md" in pages else path
            if path in pages and path not in reached:
                reached.add(path)
                following.append(path)
    return [f"{page}: no page links to it" for page in pages if page not in reached]
