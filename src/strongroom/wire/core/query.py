"""Query strings: percent-decoded, case-insensitive parameters with typed access.

Source: RFC 3986 section 3.4; the parameters' errors are those of "Common REST API error codes".
Clients disagree about `+`: form encoders write it for a space. The signature shows which one a
client means (`strongroom.values.PlusSign`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_query, out_of_range_query
from strongroom.values import PlusSign, is_cacheable

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class Query:
    """The parameters of one request: names in lower case, values decoded.

    `is_cached`: the object is cached, so the next request with the same text gets it too.
    """

    __slots__ = ("_raw", "_values", "get", "has_none_of", "is_cached")

    get: Callable[[str], str | None]
    """get(name) -> the value of the parameter called `name` (lower case), None when it was not
    sent. The dictionary's own method unless something was sent twice: it is called ten times in a
    request. Raises: InvalidQueryParameterValue when it was sent more than once."""

    has_none_of: Callable[[frozenset[str]], bool]
    """has_none_of(names) -> whether no parameter of these names (lower case) was sent."""

    def __init__(
        self, values: dict[str, list[str]], raw: str | None, is_cached: bool = False
    ) -> None:
        self._values = values
        self._raw = raw
        self.is_cached = is_cached
        self.has_none_of = values.keys().isdisjoint
        is_plain = all(len(sent) == 1 for sent in values.values())
        self.get = {name: one for name, (one,) in values.items()}.get if is_plain else self._only

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def as_sent(self, name: str) -> str:
        """The name of a parameter (lower case) as the client wrote it; for messages."""
        pairs = (self._raw or "").split("&")
        names = (decode(pair.partition("=")[0]) for pair in pairs)
        return next((sent for sent in names if sent.lower() == name), name)

    def _only(self, name: str) -> str | None:
        """Do what `get` does, where a parameter was sent more than once."""
        values = self._values.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise invalid_query(name, values[1], "The parameter is specified more than once.")
        return values[0]

    def require(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise StorageError(
                errors.MISSING_REQUIRED_QUERY_PARAMETER, None, (("QueryParameterName", name),)
            )
        return value

    def integer(self, name: str, minimum: int, maximum: int) -> int | None:
        """None when the parameter was not sent or is empty."""
        text = self.get(name)
        if not text:
            return None
        if _INTEGER.fullmatch(text) is None:
            raise invalid_query(name, text, "The value is not an integer.")
        value = int(text)
        if not minimum <= value <= maximum:
            raise out_of_range_query(name, text, minimum, maximum)
        return value

    def comma_list(self, name: str, allowed: frozenset[str]) -> frozenset[str]:
        """The elements of a comma-separated list, which may span several parameters."""
        words = set()
        for text in self._values.get(name, ()):
            for element in text.split(","):
                word = element.strip().lower()
                if word and word not in allowed:
                    raise invalid_query(name, text, f"{element.strip()} is not known here.")
                words.add(word)
        return frozenset(words - {""})


# Clients repeat their queries (often a SAS token and nothing else), so parsed queries are cached.
_CACHED_PAIRS: Final = 1024
_REMEMBERED_PAIR_CHARS_MAX: Final = 128


# These values are codes (base64, numbers, times), which never contain a space.
_NEVER_SPACE: Final = frozenset(("blockid", "marker", "popreceipt", "snapshot", "versionid"))
_NEVER_SPACE_PREFIX: Final = "next"
# These values are free text: without a signature, a `+` in them means a space.
_SPACE_UNLESS_SIGNED: Final = frozenset(("$filter", "$select", "prefix", "startfrom"))


def parse(raw: str | None, plus: PlusSign = PlusSign.ITSELF) -> Query:
    """Parse the query of a request target.

    Arguments:
        raw: the text after the question mark exactly as sent, decoded as latin-1; None = no query.
        plus: the meaning of a `+`. In a block id, a continuation, a snapshot and the like it is
            always a plus sign.

    Raises: InvalidUri for a bad escape or text that is not UTF-8.
    """
    if raw is None or is_cacheable(raw):
        return _parse_remembered(raw, plus)
    return Query(_values(raw, plus), raw)


@lru_cache(_CACHED_PAIRS)
def _parse_remembered(raw: str | None, plus: PlusSign) -> Query:
    return Query(_values(raw, plus), raw, is_cached=True)


def _values(raw: str | None, plus: PlusSign) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for pair in raw.split("&") if raw else ():
        if pair:
            if plus is not PlusSign.ITSELF and "+" in pair:
                pair = _spaced(pair, plus)
            is_short = len(pair) <= _REMEMBERED_PAIR_CHARS_MAX
            name, value = _cached_pair(pair) if is_short else _pair(pair)
            values.setdefault(name, []).append(value)
    return values


def _spaced(pair: str, plus: PlusSign) -> str:
    """The parameter with its plus signs replaced by spaces if they mean spaces."""
    raw_name, equals, value = pair.partition("=")
    name = decode(raw_name).lower()
    if plus is PlusSign.UNSIGNED:
        is_space = name in _SPACE_UNLESS_SIGNED
    else:
        is_space = name not in _NEVER_SPACE and not name.startswith(_NEVER_SPACE_PREFIX)
    return raw_name + equals + value.replace("+", " ") if is_space else pair


def _pair(pair: str) -> tuple[str, str]:
    name, _, value = pair.partition("=")
    return decode(name).lower(), decode(value)


# The cached pairs include the parameters of a SAS token, which come with each request.
_cached_pair: Final = lru_cache(_CACHED_PAIRS)(_pair)


def decode(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    try:
        if _BAD_ESCAPE.search(text):
            raise ValueError(text)
        return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
    except ValueError:
        shown = text[:256].encode("ascii", "backslashreplace").decode("ascii")
        raise StorageError(errors.INVALID_URI, None, (("UriQuery", shown),)) from None
