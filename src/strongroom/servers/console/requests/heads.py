"""The heads of requests and answers as they were sent, read when somebody looks at them.

The server has read the same bytes before, so they are well formed. They may be cut at their end,
which a NUL then marks. What of them is shown: masking.py. Source: RFC 9112 sections 2 to 5.
"""

from __future__ import annotations

from typing import Final

import msgspec

_CUT_MARK: Final = "\0"


class SentHead(msgspec.Struct, frozen=True):
    """A head: its first line in parts, and its fields in order.

    Attributes:
        method: of a request; "" = of an answer.
        target: of a request.
        reason: of an answer.
        fields: (name, value) pairs as latin-1.
        is_cut: whether its end is missing.
    """

    method: str = ""
    target: str = ""
    reason: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False


def read_request(data: bytes) -> SentHead:
    line, fields, is_cut = _read(data)
    method, _, rest = line.partition(" ")
    return SentHead(method, rest.partition(" ")[0], "", fields, is_cut)


def read_answer(data: bytes) -> SentHead:
    line, fields, is_cut = _read(data)
    return SentHead(reason=line.partition(" ")[2].partition(" ")[2], fields=fields, is_cut=is_cut)


def _read(data: bytes) -> tuple[str, tuple[tuple[str, str], ...], bool]:
    text = data.strip(b"\r\n").decode("latin-1")
    is_cut = text.endswith(_CUT_MARK)
    first, *lines = text.removesuffix(_CUT_MARK).split("\n")
    fields: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.rstrip("\r").partition(":")
        if line.strip() and (colon or name):
            fields.append((name, value.strip(" \t")))
    return first.rstrip("\r"), tuple(fields), is_cut
