"""The filter of the tail of requests: its grammar, as a pure function.

Words are separated by spaces, and all of them must hold. `NAME:VALUE` compares one field; another
word is a status, or a part of status, code, path, who or operation. Double quotes hold spaces
together. A hyphen before a word means that it must not hold. Case does not matter.

    403                  status 403
    status:4xx           status:400-499    status:>=400
    path:/logs/          who:key1          op:"Put Blob"       -code:BlobNotFound

Must not live here: what a viewer may see (scope.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from strongroom.servers.console.requests.kept import ShortRecord

FILTER_CHARS_MAX: Final = 512
WORDS_MAX: Final = 16
"""Each word is looked for in each of 10,000 records: these take a tenth of a second, in slices."""
Matches = Callable[[ShortRecord], bool]
_WORD: Final = re.compile(r'(-?)(?:([A-Za-z]+)[:=])?(?:"([^"]*)"|([^\s"]+))(?=\s|$)|(\S+)')
_STATUS: Final = re.compile(r"([1-5])xx|(\d{3})-(\d{3})|(>=|<=|>|<)?(\d{3})", re.IGNORECASE)
_BOUNDS: Final[Mapping[str, Callable[[int], tuple[int, int]]]] = {
    "": lambda status: (status, status),
    ">=": lambda status: (status, 999),
    "<=": lambda status: (0, status),
    ">": lambda status: (status + 1, 999),
    "<": lambda status: (0, status - 1),
}
_SERVICES: Final = {"b": "blob", "q": "queue", "t": "table", "f": "file", "": ""}
_TEXTS: Final[Mapping[str, Callable[[ShortRecord], str]]] = {
    "code": lambda record: record.code,
    "path": lambda record: record.path,
    "who": lambda record: record.who,
    "operation": lambda record: record.operation,
    "op": lambda record: record.operation,
    "method": lambda record: record.method,
    "account": lambda record: record.account,
    "service": lambda record: _SERVICES.get(record.service, ""),
}
_ANYWHERE: Final = ("code", "path", "who", "operation")


class FilterProblem(ValueError):
    """A filter that cannot be read; the text says where, and what may stand there."""


def parse_filter(text: str) -> Matches:
    """Raises: FilterProblem."""
    if len(text) > FILTER_CHARS_MAX:
        raise FilterProblem(f"A filter has {FILTER_CHARS_MAX} characters at most.")
    wanted = [_word(found) for found in _WORD.finditer(text)]
    if len(wanted) > WORDS_MAX:
        raise FilterProblem(f"A filter has {WORDS_MAX} words at most.")
    return lambda record: all(matches(record) for matches in wanted)


def _word(found: re.Match[str]) -> Matches:
    hyphen, name, quoted, bare, wrong = found.groups()
    if wrong is not None:
        raise FilterProblem(f"{wrong[:40]!r} cannot be read: close each double quote.")
    value = (bare if quoted is None else quoted).lower()
    matches = _named(name.lower(), value) if name and name.lower() in _NAMES else _anywhere(found)
    return (lambda record: not matches(record)) if hyphen else matches


def _named(name: str, value: str) -> Matches:
    if name == "status":
        bounds = _status(value)
        if bounds is None:
            raise FilterProblem(f"{value[:40]!r} is no status: write 403, 4xx, 400-499 or >=400.")
        low, high = bounds
        return lambda record: low <= record.status <= high
    if name == "through":
        return lambda record: record.through_console is (value == "console")
    text_of = _TEXTS[name]
    return lambda record: value in text_of(record).lower()


def _anywhere(found: re.Match[str]) -> Matches:
    """Return the check of a word without a field; an unknown field is a part of the word."""
    _, name, quoted, bare, _ = found.groups()
    value = (bare if quoted is None else quoted).lower()
    if name:
        value = f"{name.lower()}{found[0].lstrip('-')[len(name)]}{value}"
    bounds = _status(value)
    texts = [_TEXTS[one] for one in _ANYWHERE]

    def matches(record: ShortRecord) -> bool:
        if bounds is not None and bounds[0] <= record.status <= bounds[1]:
            return True
        return any(value in text_of(record).lower() for text_of in texts)

    return matches


def _status(text: str) -> tuple[int, int] | None:
    found = _STATUS.fullmatch(text)
    if found is None:
        return None
    if found[1]:
        return int(found[1]) * 100, int(found[1]) * 100 + 99
    if found[2]:
        return int(found[2]), int(found[3])
    return _BOUNDS[found[4] or ""](int(found[5]))


_NAMES: Final = frozenset((*_TEXTS, "status", "through"))
