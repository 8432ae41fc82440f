"""The texts of a client in the access log: cut, and without secrets.

Lives here: which parameters of a query are shown, and how names of objects are. Must not live here:
the line (record.py). Only parameters of the lists below appear. Everything else of a query may be a
secret, or content: a signature, a filter on entities, the address of a copy's source.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from strongroom.limits import KIB

TEXT_BYTES_MAX: Final = 4 * KIB
HIDDEN: Final = "-"
# A text of so many characters is never longer in UTF-8 than the limit.
_SHORT_CHARS: Final = TEXT_BYTES_MAX // 4
_CACHED_MAX: Final = 1024
_CACHED_CHARS_MAX: Final = 256

_SHOWN: Final = frozenset(
    (
        # what is requested
        *("restype", "comp", "timeout", "api-version", "snapshot", "sharesnapshot", "versionid"),
        *("prevsnapshot", "prevsharesnapshot", "delimiter", "maxresults", "include", "showonly"),
        *("blockid", "blocklisttype", "deletetype", "copyid", "numofmessages", "peekonly"),
        *("visibilitytimeout", "messagettl", "$top", "$format"),
        # a SAS, without its signature and its range of keys
        *("sv", "ss", "srt", "sp", "st", "se", "sr", "si", "sip", "spr", "ses", "sdd", "tn"),
        *("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "sduoid"),
        *("skdutid", "srh", "srq"),
    )
)
# Parameters that have, or may have, the names of objects.
_NAMES: Final = frozenset(("prefix", "marker", "startfrom", "endbefore"))
# A signature that a mistaken URL has in its path, or that a client puts into another text. The URL
# may have been encoded several times.
_SIGNATURE: Final = re.compile(
    r"((?:^|[^0-9A-Za-z]|%(?:25)*(?:3F|26|3B))sig(?:\[\])?(?:=|%(?:25)*3D))[^&;\s]*", re.IGNORECASE
)
_SIG: Final = re.compile("sig", re.IGNORECASE)


class ObjectNames(enum.Enum):
    """How the names of blobs, files, messages and entities are shown."""

    PLAIN = "plain"
    HASH = "hash"
    OFF = "off"


def shown(text: str) -> str:
    """Return the same as `cut`; texts that clients repeat are found in a cache."""
    return _cut_cached(text) if len(text) <= _CACHED_CHARS_MAX else cut(text)


def cut(text: str) -> str:
    """Return a client's text, without signatures, and at most TEXT_BYTES_MAX long in UTF-8.

    Half of a surrogate pair, which a client may send in UTF-16, becomes a question mark.
    """
    if len(text) > _SHORT_CHARS:
        text = text.encode("utf-8", "replace")[:TEXT_BYTES_MAX].decode("utf-8", "ignore")
    elif not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return without_signatures(text)


_cut_cached: Final = lru_cache(maxsize=_CACHED_MAX)(cut)


def without_signatures(text: str) -> str:
    """Return a text whose signatures, as of `sig=...`, are replaced by HIDDEN."""
    if _SIG.search(text) is None:
        return text
    return _SIGNATURE.sub(rf"\1{HIDDEN}", text)


def shown_query(query: str, names: ObjectNames) -> str:
    """Return the parameters of a query that may be shown; the values of others are HIDDEN, as are
    unknown parameters."""
    if len(query) > _SHORT_CHARS:
        return cut(_shown_query(query[:TEXT_BYTES_MAX], names))
    return _shown_query(query, names)


@lru_cache(maxsize=_CACHED_MAX)
def _shown_query(query: str, names: ObjectNames) -> str:
    return "&".join([_shown_parameter(one, names) for one in query.split("&")])


def _shown_parameter(parameter: str, names: ObjectNames) -> str:
    if not parameter:
        return ""
    name, _, value = parameter.partition("=")
    known = unquote_plus(name).strip().lower()
    if known in _SHOWN or (known in _NAMES and names is ObjectNames.PLAIN):
        return cut(f"{known}={value}")
    return f"{known}={HIDDEN}" if known in _NAMES or known == "sig" else HIDDEN
