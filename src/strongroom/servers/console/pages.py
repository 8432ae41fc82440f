"""The page's built files, by the path of a URL.

Lives here: reading them once, and which addresses the page has. Must not live here: headers
(answers.py), how the files are built (console/ in the repository). The files are read at the start.
A path of a URL is looked up among them, so it never names a file of the disk.
"""

from __future__ import annotations

import importlib.resources
import posixpath
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from strongroom.limits import MIB

VIEWS: Final = frozenset(
    {"overview", "blobs", "queues", "tables", "files", "coordination", "requests", "access"}
)
"""The first segments of the page's addresses; each of them, and `/`, is the same page."""
_BYTES_MAX: Final = 8 * MIB
_INDEX: Final = "index.html"
_FOLDER: Final = "assets"
_HTML: Final = "text/html; charset=utf-8"
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
_PLAIN: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Strongroom Console</title></head><body>
<h1>Strongroom Console</h1>
{}
</body></html>
"""
_NOT_BUILT: Final = """<p>The page is not built. In a copy of the repository with Node.js, run
<code>make console</code>, then start the server again. The data and the read API of this port are
served.</p>"""
_NO_IPV6: Final = """<p>A browser cannot be told which scripts of a bare IPv6 address may run, so
the page is not shown here. Open it by a name: on this machine
<a href="{0}">{0}</a>, elsewhere a name that <code>--own-host</code> gives.</p>"""


class PageFile(NamedTuple):
    body: bytes
    media_type: str


class BuiltPage:
    """The page as it was built, read whole into memory.

    Arguments:
        folder: where `make console` put it; None = the package's own. Without an index there is a
            plain page, which says how to build it.
    """

    def __init__(self, folder: Traversable | None = None) -> None:
        if folder is None:
            folder = importlib.resources.files("strongroom.servers.console") / "built"
        index = folder / _INDEX
        self.is_built = index.is_file()
        self._index = PageFile(index.read_bytes() if self.is_built else _plain(_NOT_BUILT), _HTML)
        self._files = dict(_read(folder / _FOLDER)) if self.is_built else {}
        if sum(len(one.body) for one in self._files.values()) > _BYTES_MAX:
            raise ValueError(f"the console's page in {folder} has more than {_BYTES_MAX} bytes")

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files beside the index."""
        return tuple(self._files)

    def find(self, path: str) -> PageFile | None:
        """Return the file of a URL's path, as sent; None if there is none."""
        first = path[1:].partition("/")[0]
        return self._index if first in VIEWS or path == "/" else self._files.get(path)


def no_ipv6(url: str) -> PageFile:
    """Return the page for those who opened a bare IPv6 address; `url` has safe characters only."""
    return PageFile(_plain(_NO_IPV6.format(url)), _HTML)


def _plain(content: str) -> bytes:
    return _PLAIN.format(content).encode()


def _read(folder: Traversable) -> Iterator[tuple[str, PageFile]]:
    """Yield the files of which browsers are told a type; no others are served."""
    for file in sorted(folder.iterdir(), key=lambda one: one.name) if folder.is_dir() else ():
        media_type = _TYPES.get(posixpath.splitext(file.name)[1])
        if media_type is not None and file.is_file():
            yield f"/{_FOLDER}/{file.name}", PageFile(file.read_bytes(), media_type)
