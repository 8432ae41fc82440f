"""The URL of a place for bodies: `file:///shared`.

Lives here: its form. No import of what opens one, since flags need only this.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

SCHEME: Final = "file://"


def folder_of(url: str) -> str:
    """Return the path of a folder. Raises: ValueError, which says what to give."""
    path = unquote(url.removeprefix(SCHEME))
    is_path = path.startswith("/") and path.strip("/") != ""
    if not url.startswith(SCHEME) or not is_path or not path.isprintable() or ".." in path:
        raise ValueError("give the URL of a folder that all gateways mount, such as file:///shared")
    return path.rstrip("/")


def place_url(text: str) -> str:
    """Return the URL in the form in which stores keep it. Raises: ValueError."""
    return SCHEME + folder_of(text)
