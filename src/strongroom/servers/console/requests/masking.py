"""What of a request is never shown: the one declared list, and the function that masks by it.

Lives here: the list, and the masking of headers, URLs and texts. Must not live here: what else is
shown (answers.py). Names are compared without case and after percent-decoding, however often they
were encoded. A secret is masked where its name stands. Its value is masked wherever else it stands,
since a string to sign and the text of an error repeat headers and parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote

from strongroom.servers.console.requests.heads import SentHead

HIDDEN: Final = "***"
SHOWN_CHARS: Final = 4

HIDDEN_HEADERS: Final = (
    "*authorization",
    "*cookie",
    "*cookie2",
    "x-ms-*encryption-key*",
)
"""Headers of requests and answers whose whole value is a secret."""
SHORTENED_HEADERS: Final = ("*lease-id", "*popreceipt", "*pop-receipt")
"""Headers of which the first four characters are shown."""
HIDDEN_PARAMETERS: Final = ("sig",)
"""Parameters of URLs, wherever a URL stands."""
SHORTENED_PARAMETERS: Final = ("popreceipt", "leaseid")
"""Parameters of URLs of which the first four characters are shown."""

# Shorter values are no secrets that a server gave out, and would hide every other text.
_SECRET_CHARS_MIN: Final = 6
# A text may end within a secret, so its beginning is looked for.
_PREFIX_CHARS: Final = 12
_DECODED_TIMES: Final = 4
_BLANKS: Final = r"(?:[\s+\0]|%(?:25)*(?:00|09|0a|0d|20)){0,8}"
_ENDS_VALUE: Final = r"[^&\s\"'<>]*"
_REST: Final = re.compile(r"[^\s\"'<>&;,]*")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9]{0,31}) +(?:([a-z0-9.-]{1,63}):)?(.*)", re.DOTALL)


def _letter(char: str) -> str:
    codes = "|".join(f"{ord(one):02x}" for one in (char, char.upper()))
    return f"(?:{char}|%(?:25)*(?:{codes}))"


def _parameter(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of a parameter: its name, then its value. The name has a letter or an escape
    in each place. A list may have square brackets, and a mistyped name blanks at its end."""
    either = "|".join("".join(map(_letter, name)) for name in names)
    opening, closing, equals = (
        f"(?:{one}|%(?:25)*{ord(one[-1]):02x})" for one in (r"\[", r"\]", "=")
    )
    named = f"((?:{either})(?:{opening}{closing})?{_BLANKS}(?:{equals}))"
    return re.compile(f"{named}({_ENDS_VALUE})", re.IGNORECASE)


_HIDDEN_PARAMETER: Final = _parameter(HIDDEN_PARAMETERS)
_SHORTENED_PARAMETER: Final = _parameter(SHORTENED_PARAMETERS)


class Masking:
    """The masking of one request: its own secrets are masked in every text.

    Arguments:
        heads: of the request, and of its answer.
    """

    def __init__(self, *heads: SentHead) -> None:
        secrets = {one for head in heads for one in _secrets(head)}
        # The longest first: one secret may contain another.
        self._secrets = sorted(secrets, key=lambda one: (-len(one[0]), one))

    def header(self, name: str, value: str) -> str:
        known = _plain_name(name)
        if _is_one_of(known, HIDDEN_HEADERS):
            return _scheme_only(value)
        if _is_one_of(known, SHORTENED_HEADERS):
            return shortened(value)
        return self.text(value)

    def text(self, text: str) -> str:
        """Return a text without secrets: a URL, a header, a message."""
        for secret, mask in self._secrets:
            text = _without(text, secret, mask)
        return masked_text(text)

    def signed_text(self, text: str) -> str:
        """A string to sign has a header or parameter a line, as `name:value`."""
        return "\n".join(map(self._signed_line, text.split("\n")))

    def _signed_line(self, line: str) -> str:
        name, colon, value = line.partition(":")
        if not colon:
            return self.text(line)
        if name.lower() in HIDDEN_PARAMETERS:
            return f"{name}:{HIDDEN}"
        if name.lower() in SHORTENED_PARAMETERS:
            return f"{name}:{shortened(value)}"
        return f"{name}:{self.header(name, value)}"


def masked_text(text: str) -> str:
    """Return a text without the values of the declared parameters."""
    text = _HIDDEN_PARAMETER.sub(rf"\1{HIDDEN}", text)
    return _SHORTENED_PARAMETER.sub(lambda found: found[1] + shortened(found[2]), text)


def shortened(value: str) -> str:
    """Return the first characters of a secret that may be recognised, but not used."""
    return f"{value[:SHOWN_CHARS]}{HIDDEN}" if len(value) >= 2 * SHOWN_CHARS else HIDDEN


def _plain_name(name: str) -> str:
    return _decoded(name).strip().lower()


def _decoded(text: str) -> str:
    for _ in range(_DECODED_TIMES):
        if "%" not in text:
            break
        text = unquote(text, "latin-1")
    return text


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _scheme_only(value: str) -> str:
    """Return the scheme of credentials, and the account of SharedKey."""
    found = _SCHEME.fullmatch(value)
    if found is None or not found[1].lower().startswith(("sharedkey", "bearer")):
        return HIDDEN
    account = f"{found[2]}:" if found[2] and found[1].lower().startswith("sharedkey") else ""
    return f"{found[1]} {account}{HIDDEN}"


def _secrets(head: SentHead) -> Iterator[tuple[str, str]]:
    """Yield the secrets in a head, in every encoding, each with what is shown in its place."""
    for name, value in head.fields:
        known = _plain_name(name)
        if _is_one_of(known, SHORTENED_HEADERS):
            yield from _encodings(value, shortened(value))
        elif _is_one_of(known, HIDDEN_HEADERS):
            for piece in _pieces(value):
                yield from _encodings(piece, HIDDEN)
        yield from _parameters(value)
    yield from _parameters(head.target)


def _pieces(value: str) -> Iterator[str]:
    """Yield the secrets of credentials or cookies: without scheme, account and names."""
    found = _SCHEME.fullmatch(value)
    if found is not None and found[2]:
        yield found[3]  # not the account before it, which other texts name
        return
    yield value
    if found is not None:
        yield found[3]
    for one in re.split(r"[;,]", value):
        yield one.strip()
        yield one.partition("=")[2].strip()


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for found in _HIDDEN_PARAMETER.finditer(text):
        yield from _encodings(found[2], HIDDEN)
    for found in _SHORTENED_PARAMETER.finditer(text):
        yield from _encodings(found[2], shortened(_decoded(found[2])))


def _encodings(value: str, mask: str) -> Iterator[tuple[str, str]]:
    for _ in range(_DECODED_TIMES):
        for form in (value, value.replace("+", " ")):
            if len(form.strip()) >= _SECRET_CHARS_MIN:
                yield form, mask
        if "%" not in value:
            return
        value = unquote(value)


def _without(text: str, secret: str, mask: str) -> str:
    """Return a text without a secret, of which it may have the beginning only."""
    start = secret[:_PREFIX_CHARS]
    at = text.find(start)
    while at >= 0:
        end = at + len(start)
        while end < len(text) and end - at < len(secret) and text[end] == secret[end - at]:
            end += 1
        if len(secret) > _PREFIX_CHARS:
            # What is kept of the head may have been cut within the secret.
            rest = _REST.match(text, end)
            end = end if rest is None else rest.end()
        text = f"{text[:at]}{mask}{text[end:]}"
        at = text.find(start, at + len(mask))
    return text
