"""The further stores that the settings name.

Lives here: the reading of NAME=URL. Must not live here: the stores (other_stores.py). Nothing of
the toolkit is imported here: a server reads its settings before it loads the toolkit.
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
    if len({one.name for one in sources}) < len(sources):
        raise ConfigError("--coordination-store: two stores have the same name")
    return sources


def store_source(text: str) -> StoreSource:
    """Return the store that a text NAME=URL names. Raises: ConfigError, without the URL."""
    found = _STORE.fullmatch(text)
    if found is None:
        raise ConfigError(
            "--coordination-store needs NAME=URL, like jobs=redis://10.0.0.5:6379/0; a name has"
            " letters, digits, hyphens and underscores"
        )
    return StoreSource(found[1], found[2])
