"""The options and the host of a URL: one rule for every store and every message bus.

Lives here: `UrlOptions`, the options of a scheme; `check_options`, which refuses all others; and
`check_host`, which refuses what cannot be a host's name. A misspelled option must not be ignored:
it may select the mode of a store, and participants in two modes may not exclude each other. So an
unknown, repeated or empty option, or an unknown value, is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl

from strongroom.coordination.errors import Unsupported

ANY: Final[tuple[str, ...]] = ()
"""The values of an option that takes any text."""
SWITCH: Final = ("0", "1")
_SIMILARITY_MIN: Final = 0.6
_SECRET_SIMILARITY_MIN: Final = 0.75  # two swapped letters in a word of four


@dataclass(frozen=True, slots=True)
class UrlOptions:
    """The options that a scheme knows.

    Attributes:
        values: option -> its allowed values; `ANY` for free text.
        secrets: options whose values are secrets.
        may_be_empty: options whose value may be empty.
        passed_on: further options, with any value, that are passed on to a library such as libpq.
        passed_on_as: the name of `passed_on` in messages, in place of a long list.
    """

    values: Mapping[str, tuple[str, ...]]
    secrets: frozenset[str] = frozenset()
    may_be_empty: frozenset[str] = frozenset()
    passed_on: tuple[str, ...] = ()
    passed_on_as: str = ""

    @property
    def option_names(self) -> str:
        """The names of all options, joined by commas for error messages."""
        option_names = sorted(self.values)
        if self.passed_on_as:
            option_names.append(self.passed_on_as)
        return ", ".join(option_names) or "none"

    def nearest(self, name: str, likeness: float) -> str:
        """Return the option most similar to `name`; empty if none reaches `likeness` (0 to 1)."""
        known = [*self.values, *self.passed_on]
        matches = difflib.get_close_matches(name.lower(), known, 1, likeness)
        return matches[0] if matches else ""


def shown_url(url: str) -> str:
    """Return a store's URL without what may be a secret: user, password and options."""
    scheme, _, rest = url.partition("://")
    place = rest.partition("#")[0].partition("?")[0]
    # A password may hold an unescaped slash. In the path of a file, an @ is a character.
    is_path = place.startswith("/")
    return f"{scheme}://{place if is_path else place.rpartition('@')[2]}"


def query_of(url: str) -> dict[str, str]:
    """Return the query of a URL as a mapping; of a repeated option only the last value.

    A plus sign is not decoded to a space (RFC 3986), since base64 keys contain it.

    Raises:
        ValueError: the URL cannot be read; the text may quote a secret.
    """
    return dict(_pairs(url))


def check_options(url: str, query: Mapping[str, str], options: UrlOptions) -> None:
    """Refuse a URL if any of its options would not be honoured.

    Arguments:
        url: the whole URL; it is searched for repeated options and for a fragment.
        query: the options of the URL.
        options: the options that the scheme knows.

    Raises:
        Unsupported: an option is unknown, repeated or empty, or has an unknown value. The message
            quotes no value of a secret option, and no text that may be part of one.
    """
    pairs = _pairs(url)
    where = f"{_scheme(url)}://"
    if url.partition("#")[2]:
        raise Unsupported(f"a # ends the {where} URL: write %23 for it in names and values")
    for at, name in enumerate(query):
        if name not in options.values and name not in options.passed_on:
            raise Unsupported(_unknown(url, list(query), at, options))
    names = [name for name, _ in pairs]
    for name, value in query.items():
        if names.count(name) > 1:
            raise Unsupported(f"the {where} URL gives the option {name!r} more than once")
        if not value and name not in options.may_be_empty:
            raise Unsupported(f"the option {name!r} of the {where} URL is empty; leave it out")
        allowed = options.values.get(name, ANY)
        if allowed and value not in allowed:
            shown = "another value" if name in options.secrets else f"{value!r}"
            known = " or ".join(f"{name}={one}" for one in allowed)
            what = f"the option {name!r} of the {where} URL"
            raise Unsupported(f"{what} must be {known}, not {shown}")


def check_host(host: str) -> None:
    """Refuse a host name that cannot be looked up.

    A label (the text between two dots) must not be empty, as in `a..b`, or longer than 63
    characters. Some characters are never valid in a host name.

    Source: RFC 1035 section 2.3.4 (lengths), RFC 3490 (internationalized names).

    Raises:
        Unsupported: the host is no such name. It is not quoted, as it may be part of a secret.
    """
    try:
        host.encode("idna")
    except UnicodeError:
        raise Unsupported(
            "the host in the URL cannot be the name of a host: between two dots stand 1 to 63"
            " letters, digits and hyphens"
        ) from None


def port_of(parts: SplitResult, default: int) -> int:
    """Return the port of a URL; `default` if the URL names none.

    Raises:
        Unsupported: the port is no number from 1 to 65535.
    """
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise unreadable_url(parts.scheme)
    return default if port is None else port


def unreadable_url(scheme: str) -> Unsupported:
    """Return the error for a URL that cannot be split. It quotes nothing, as all may be secret."""
    return Unsupported(
        f"the {scheme}:// URL cannot be read: is the port a number from 1 to 65535, and is"
        " everything in it percent-encoded?"
    )


def _pairs(url: str) -> list[tuple[str, str]]:
    return parse_qsl(_query(url).replace("+", "%2B"), keep_blank_values=True)


def _query(url: str) -> str:
    return url.partition("#")[0].partition("?")[2]


def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()


def _unknown(url: str, names: list[str], at: int, options: UrlOptions) -> str:
    """Return the error message for an unknown option.

    A "?" in a password, or an "&" in a key, also starts an option if it is not percent-encoded. The
    option's name may then be part of a secret, so it is quoted only if it resembles an option.
    """
    name = names[at]
    may_leak_secret = "@" in _query(url) or options.secrets.intersection(names[:at])
    nearest = options.nearest(name, _SECRET_SIMILARITY_MIN if may_leak_secret else _SIMILARITY_MIN)
    where = f"{_scheme(url)}://"
    if nearest:
        return (
            f"{where} knows no option {name!r}; did you mean {nearest!r}?"
            f" It has: {options.option_names}"
        )
    known = f"it has: {options.option_names}"
    encode = "special characters in a password or a value must be percent-encoded"
    if may_leak_secret:
        return (
            f"{where} knows no option of that name (number {at + 1} in the URL, not"
            f" quoted because it may be part of a secret); {known}; {encode}"
        )
    return f"{where} knows no option {name!r}; {known}; {encode}"


def split_hosts(url: str) -> tuple[str, str]:
    """Return the text between `//` and the next slash, and the path after it.

    `urlsplit` is not used: some versions of it refuse an IPv6 address that is not the first of
    several hosts.
    """
    rest = url.partition("://")[2].partition("#")[0].partition("?")[0]
    netloc, slash, path = rest.partition("/")
    return netloc, slash + path
