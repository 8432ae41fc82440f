"""A URL of a PostgreSQL where a data directory is wanted: it is refused, since it would be made.

Must not live here: which tool or flag takes the URL, if it is not `--store` (the commands).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from strongroom.cli.exits import Exit, fail

DATA_IS_URL: Final = (
    "is the URL of a PostgreSQL, and must be a directory: give the URL by --store or --store-file"
)
_SCHEMES: Final = {"postgresql:", "postgres:"}


def is_url(path: Path) -> bool:
    """Return whether a path is a URL, also one below a folder. It has lost one slash."""
    return not _SCHEMES.isdisjoint(path.parts)


def refuse_urls(text: str, *paths: Path) -> None:
    """End the command with a text if one of the paths is a URL. The text has no URL, which may have
    a password."""
    if any(map(is_url, paths)):
        fail(Exit.USAGE, text)
