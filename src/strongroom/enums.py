"""The base class of enumerations whose members are keys of lookup tables.

Lives here: the base class. Must not live here: any enumeration. Source: the Python documentation,
"enum": members are singletons, and the hash of one is that of its name.
"""

from __future__ import annotations

import enum


class FastHashEnum(enum.Enum):
    """An enumeration with a fast hash, for keys of lookup tables.

    The default hash of a member is a Python call, and each request makes several.
    """

    __hash__ = object.__hash__
