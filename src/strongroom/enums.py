"""Enumerations that tables are looked up by.

Lives here: their base. Must not live here: any enumeration. Source: the Python documentation,
"enum": members are singletons, and the hash of one is that of its name.
"""

from __future__ import annotations

import enum


class Heading(enum.Enum):
    """The key type of lookup tables. The default hash is a call of Python, and each request makes
    several."""

    __hash__ = object.__hash__
