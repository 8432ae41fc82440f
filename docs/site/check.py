"""Checks the site that was built: it can be read from a disk, and loads nothing from other sites.

Lives here: the rules for built pages. Must not live here: links between sources (MkDocs checks
them).

    python docs/site/check.py build/site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_PICTURES = {"img", "source"}
# These only say where something is.
_NOT_LOADED = {"canonical", "prev", "next"}
_IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?(https?:)?//", re.IGNORECASE)


class _Addresses(HTMLParser):
    """What a page loads, and where it leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        address = given.get(_LOADED.get(tag, ""), "")
        if address and given.get("rel") not in _NOT_LOADED:
            self.loaded.append(address)
        if tag in _PICTURES:
            # A set has several addresses, parted by commas, each perhaps with a size.
            several = [one.split()[0] for one in given.get("srcset", "").split(",") if one.strip()]
            self.loaded += several
            self.pictures += [one for one in (given.get("src", ""), *several) if one]


def complaints(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site, one line each."""
    pages = sorted(site.rglob("*.html"))
    for page in pages:
        found = _Addresses()
        found.feed(page.read_text(encoding="utf-8"))
        where = page.relative_to(site)
        for address in found.loaded:
            if urlsplit(address).netloc:
                yield f"{where}: loads {address}"
        # The page for what is not found is served for any path, so its links begin at the root.
        checked = () if page.name == "404.html" else (*found.links, *found.pictures)
        for link in checked:
            if not _leads_to_a_file(page, link):
                yield f"{where}: {link} leads to no file"
    for style in sorted(site.rglob("*.css")):
        if _IN_STYLES.search(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: loads something from another site"
    if not (site / "search" / "search_index.js").is_file():
        yield "there is no index for a search without a server"
    if len(pages) < 2:
        yield f"{site}: there are no pages"


def _leads_to_a_file(page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return True
    return (page.parent / unquote(parts.path)).is_file()


def main() -> None:
    """Print the complaints about the site of the first argument; exit with 1 for any."""
    found = list(complaints(Path(sys.argv[1])))
    print("\n".join(found) or "The site can be read from a disk, and loads nothing from elsewhere.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
