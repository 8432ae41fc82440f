"""The further stores that the settings name.

Lives here: the reading of NAME=URL, and the refusal of what can never work. Must not live here: the
stores (other_stores.py). The toolkit is loaded only where a store is named: a server that starts
needs it for nothing else. No request is sent, so a store need not run yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strongroom.config import ConfigError

_STORE: Final = re.compile(r"([A-Za-z0-9_-]{1,40})=([a-z][a-z0-9+]*://\S*)")


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A further store: its name in the console, and its URL with the credentials."""

    name: str
    url: str


def store_sources(texts: Sequence[str]) -> tuple[StoreSource, ...]:
    """Return the stores that texts NAME=URL name. Raises: ConfigError."""
    sources = tuple(map(store_source, texts))
    names = [one.name for one in sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--coordination-store: two stores have the same name, {name!r}")
    return sources


def store_source(text: str) -> StoreSource:
    """Return the store that a text NAME=URL names.

    Raises: ConfigError, without what is secret in the URL: the text is none, or the URL names
        nothing that the toolkit could open.
    """
    found = _STORE.fullmatch(text)
    if found is None:
        raise ConfigError(
            "--coordination-store needs NAME=URL, like jobs=redis://10.0.0.5:6379/0; a name has"
            " letters, digits, hyphens and underscores"
        )
    source = StoreSource(found[1], found[2])
    problem = _problem(source.url)
    if problem is not None:
        raise ConfigError(
            f"--coordination-store {source.name}=URL can never be opened: {problem}"
            " (docs/coordination/stores.md has the form of each URL)"
        )
    return source


def _problem(url: str) -> str | None:
    """Return why a URL can never be opened; None if perhaps it can."""
    from strongroom.coordination.connect import open_store
    from strongroom.coordination.errors import CoordinationError, Unsupported

    if url.startswith("file:///"):
        return None  # opening it would make the folder
    try:
        open_store(url).close()
    except Unsupported as error:
        return str(error).replace("\n", " ")
    except CoordinationError:
        return None
    except (ValueError, OSError):  # its text may quote the URL
        return "the URL cannot be read"
    return None
