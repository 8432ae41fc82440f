"""The strings that SharedKey and SharedKeyLite sign, in every form that known clients use.

Source: "Authorize with Shared Key". Clients and that page differ in the order of the x-ms headers,
the Date line and `+` in a query. A `Form` names the choice; a verifier tries the likely form first.

All text in this module is latin-1: one character is one byte of the request, decoded or not.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from itertools import product
from typing import Final
from urllib.parse import unquote

import msgspec

from strongroom import limits
from strongroom.auth.request import HeaderFields, RequestParts, Service
from strongroom.values import PlusSign

_SIGNED_BEFORE_DATE: Final = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
)
_SIGNED_AFTER_DATE: Final = (
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
SIGNED_HEADERS: Final = (*_SIGNED_BEFORE_DATE, "date", *_SIGNED_AFTER_DATE)
_EMPTY_LENGTH_SINCE: Final = "2015-02-21"
_EMPTY_HEADERS_SINCE: Final = "2016-05-31"

# The collation of the service as its own client libraries imitate it. Hyphens and apostrophes are
# ignored; punctuation comes before digits before letters. Among equal names, the one whose first
# difference in hyphens comes later goes first.
_COLLATION: Final = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz"
_RANKS: Final = str.maketrans(
    {
        "-": None,
        "'": None,
        **{char: chr(rank) for rank, char in enumerate(_COLLATION)},
    }
)
_HYPHENS: Final = str.maketrans(
    {"-": "\2", "'": "\1", **dict.fromkeys(_COLLATION, "\0")},
)
_FOLD: Final = re.compile(r"\r?\n[ \t]+")


class Scheme(enum.Enum):
    """The value is the first word of the Authorization header."""

    SHARED_KEY = "SharedKey"
    SHARED_KEY_LITE = "SharedKeyLite"


class Form(msgspec.Struct, frozen=True):
    """One variant of the rules in which clients differ.

    Attributes:
        collated: x-ms headers are in the service's collation instead of byte order.
        dated: the Date line is filled although x-ms-date is present.
        plus_is_space: `+` in the query stands for a space.
        utf8: headers were signed as UTF-8 of their latin-1 text, not as sent.
        primary: a path of the secondary endpoint was signed as the primary's path.
        newest: a request without x-ms-version follows the newest rules, not the oldest.
    """

    collated: bool = False
    dated: bool = False
    plus_is_space: bool = False
    utf8: bool = False
    primary: bool = False
    newest: bool = False


DEFAULT_FORM: Final = Form()


def collation_key(name: str) -> tuple[str, str]:
    """The sort key of a lower-case header name in the service's collation."""
    return name.translate(_RANKS), name.translate(_HYPHENS)


def other_forms(parts: RequestParts, account: str) -> Iterator[Form]:
    """Yield the forms other than DEFAULT_FORM that change the string of this request.

    If the request has much text to sign, only the forms with one difference from DEFAULT_FORM are
    tried.
    """
    headers = parts.headers
    names = sorted(name for name, _ in headers.lowered() if name.startswith("x-ms-"))
    signed = "".join(value for _, value in headers.lowered())
    choices = (
        sorted(names, key=collation_key) != names,
        headers.get("x-ms-date") is not None and headers.get("date") is not None,
        "+" in (parts.query or ""),
        not signed.isascii(),
        _primary_path(parts, account) != parts.path,
        headers.get("x-ms-version") is None and _has_empty(headers),
    )
    forms = product(*((False, True) if differs else (False,) for differs in choices))
    most = len(choices) if _signed_chars(parts) <= limits.SIGNED_CHARS_COMBINED_MAX else 1
    return (Form(*flags) for flags in forms if 0 < sum(flags) <= most)


def _signed_chars(parts: RequestParts) -> int:
    fields = sum(len(name) + len(value) for name, value in parts.headers.lowered())
    return fields + len(parts.path) + len(parts.query or "")


def _has_empty(headers: HeaderFields) -> bool:
    """Whether the request has a field whose signing depends on the version."""
    empty = any(not value and name.startswith("x-ms-") for name, value in headers.lowered())
    return empty or headers.get("content-length") == "0"


class StringsToSign:
    """The strings that a client may have signed, by form. Parts that several forms share are made
    once. So a forged request costs little more than a valid one.

    Arguments:
        account: the name of the account, without `-secondary`.
    """

    def __init__(self, scheme: Scheme, service: Service, parts: RequestParts, account: str) -> None:
        self._lite = scheme is Scheme.SHARED_KEY_LITE
        self._table = service is Service.TABLE
        self._parts = parts
        self._account = account
        self._fields: dict[tuple[bool, bool], str] = {}
        self._queries: dict[bool, str] = {}

    def of(self, form: Form = DEFAULT_FORM) -> bytes:
        """The bytes that a client signs in `form`. Raises UnicodeEncodeError if the parts contain
        characters beyond latin-1."""
        head = self._head(form)
        if form.utf8:
            head = head.encode("utf-8").decode("latin-1")
        path = self._parts.path
        if form.primary:
            path = _primary_path(self._parts, self._account)
        query = self._query(form.plus_is_space)
        return f"{head}/{self._account}{path or '/'}{query}".encode("latin-1")

    def plus_sign(self, form: Form) -> PlusSign:
        """What a `+` in the query means to a client that signed in `form`."""
        if self._table or self._lite:
            return PlusSign.UNSIGNED  # the signature covers only `comp` of the query
        return PlusSign.SPACE if form.plus_is_space else PlusSign.ITSELF

    def _head(self, form: Form) -> str:
        parts = self._parts
        if self._table:
            return _table_lite_head(parts) if self._lite else _table_head(parts)
        first = _lite_head(parts, form) if self._lite else _full_head(parts, form)
        return f"{first}\n{self._x_ms_fields(form)}"

    def _x_ms_fields(self, form: Form) -> str:
        empty_too = _version(self._parts, form) >= _EMPTY_HEADERS_SINCE
        choice = form.collated, empty_too
        if choice not in self._fields:
            self._fields[choice] = _canonical_headers(self._parts, *choice)
        return self._fields[choice]

    def _query(self, plus_is_space: bool) -> str:
        if plus_is_space not in self._queries:
            canonical = _comp if self._table or self._lite else _canonical_query
            self._queries[plus_is_space] = canonical(self._parts.query, plus_is_space)
        return self._queries[plus_is_space]


def _full_head(parts: RequestParts, form: Form) -> str:
    get = parts.headers.get
    encoding, language, length, md5, kind = [get(name) or "" for name in _SIGNED_BEFORE_DATE]
    if length == "0" and _version(parts, form) >= _EMPTY_LENGTH_SINCE:
        length = ""
    conditions = "\n".join([get(name) or "" for name in _SIGNED_AFTER_DATE])
    return (
        f"{parts.method}\n{encoding}\n{language}\n{length}\n{md5}\n{kind}\n"
        f"{_date_line(parts, form)}\n{conditions}"
    )


def _lite_head(parts: RequestParts, form: Form) -> str:
    get = parts.headers.get
    return (
        f"{parts.method}\n{get('content-md5') or ''}\n{get('content-type') or ''}\n"
        f"{_date_line(parts, form)}"
    )


def _table_head(parts: RequestParts) -> str:
    get = parts.headers.get
    return (
        f"{parts.method}\n{get('content-md5') or ''}\n{get('content-type') or ''}\n"
        f"{_table_lite_head(parts)}"
    )


def _table_lite_head(parts: RequestParts) -> str:
    # The table scheme signs no x-ms headers, so x-ms-date replaces the Date line.
    get = parts.headers.get
    return f"{get('x-ms-date') or get('date') or ''}\n"


def _date_line(parts: RequestParts, form: Form) -> str:
    get = parts.headers.get
    if get("x-ms-date") is not None and not form.dated:
        return ""
    return get("date") or ""


def _version(parts: RequestParts, form: Form) -> str:
    version = parts.headers.get("x-ms-version")
    if version is None:
        return _EMPTY_HEADERS_SINCE if form.newest else ""
    return version


def _canonical_headers(parts: RequestParts, collated: bool, empty_too: bool) -> str:
    fields = [field for field in parts.headers.lowered() if field[0].startswith("x-ms-")]
    if collated:
        fields.sort(key=lambda field: collation_key(field[0]))
    else:
        fields.sort()
    return "".join(
        [f"{name}:{_on_one_line(value)}\n" for name, value in fields if value or empty_too]
    )


def _on_one_line(value: str) -> str:
    """`value` trimmed and unfolded; text in quotes keeps its line ends."""
    # Only these characters: a plain strip() of latin-1 text would also remove bytes of UTF-8
    # letters.
    value = value.strip(" \t\r\n")
    if "\n" not in value:
        return value
    pieces = value.split('"')
    pieces[::2] = [_FOLD.sub(" ", piece) for piece in pieces[::2]]
    return '"'.join(pieces)


def _primary_path(parts: RequestParts, account: str) -> str:
    """The path with `/ACCOUNT-secondary`, or `/ACCOUNT-secondary/ACCOUNT`, after the mount changed
    to `/ACCOUNT`."""
    path, start = parts.path, len(parts.mount)
    secondary = f"/{account}-secondary"
    if path.startswith(secondary, start):
        rest = path[start + len(secondary) :]
        if not rest or rest.startswith("/"):
            # The account's name may follow (wire/core/path.py): that is the path that was signed.
            is_twice = f"{rest}/".startswith(f"/{account}/")
            return f"{parts.mount}{rest}" if is_twice else f"{parts.mount}/{account}{rest}"
    return path


def _canonical_query(query: str | None, plus_is_space: bool) -> str:
    if not query:
        return ""
    values: dict[str, list[str]] = {}
    for name, value in _parameters(query, plus_is_space):
        values.setdefault(name, []).append(value)
    return "".join([f"\n{name}:{','.join(sorted(values[name]))}" for name in sorted(values)])


def _comp(query: str | None, plus_is_space: bool) -> str:
    if not query or "comp" not in query.lower():
        return ""
    for name, value in _parameters(query, plus_is_space):
        if name == "comp":
            return f"?comp={value}"
    return ""


def _parameters(query: str, plus_is_space: bool) -> Iterator[tuple[str, str]]:
    """(lower-case name, value) pairs, percent-decoded to bytes in latin-1."""
    text = query.replace("+", " ") if plus_is_space else query
    for piece in text.split("&"):
        if piece:
            name, _, value = piece.partition("=")
            if "%" in piece:
                name, value = unquote(name, "latin-1"), unquote(value, "latin-1")
            # Non-ASCII characters are bytes of UTF-8, which lower() would change.
            yield name.lower() if name.isascii() else name, value
