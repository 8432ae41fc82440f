"""The expression of x-ms-if-tags: its grammar, and whether a blob's tags satisfy it.

    expression   = conjunction *( "OR" conjunction )
    conjunction  = test *( "AND" test )
    test         = "(" expression ")" / key operator "'" value "'"
    key          = name / DQUOTE characters DQUOTE
    operator     = "=" / "<>" / ">" / ">=" / "<" / "<="

Must not live here: tags' storage, Find Blobs by Tags. Source: "Specifying conditional headers for
Blob service operations", x-ms-if-tags. Comparison is ordinal; a tag that is missing satisfies no
test.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from strongroom.errors import invalid_header

HEADER: Final = "x-ms-if-tags"
_CHARS_MAX: Final = 8192
_DEPTH_MAX: Final = 16
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[()])|(?P<operator><>|<=|>=|=|<|>)|'(?P<value>[^']*)'"""
    r"""|"(?P<key>[^"]+)"|(?P<word>[A-Za-z0-9_.:/+\-]+))"""
)
_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`key operator 'value'`."""

    key: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Both:
    """Every part holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part holds."""

    parts: tuple[Expression, ...]


Expression = Comparison | Both | Either


@lru_cache(maxsize=64)
def parse(text: str) -> Expression:
    """The expression of a header's value. Raises InvalidHeaderValue (400)."""
    if len(text) > _CHARS_MAX:
        raise invalid_header(HEADER, text)
    parser = _Parser(text)
    found = parser.either(0)
    if parser.kind is not None:
        raise parser.refusal()
    return found


def matches(expression: Expression, tags: Mapping[str, str]) -> bool:
    """Whether a blob with these tags satisfies the expression."""
    if isinstance(expression, Comparison):
        value = tags.get(expression.key)
        return value is not None and _OPERATORS[expression.operator](value, expression.value)
    if isinstance(expression, Both):
        return all(matches(part, tags) for part in expression.parts)
    return any(matches(part, tags) for part in expression.parts)


class _Parser:
    """Recursive descent over one text; `kind` and `text` are the token that comes next."""

    def __init__(self, source: str) -> None:
        self._source = source.strip()
        self._at = 0
        self.kind: str | None = None
        self.text = ""
        self._advance()

    def either(self, depth: int) -> Expression:
        parts = [self._both(depth)]
        while self._keyword("OR"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def refusal(self) -> Exception:
        return invalid_header(HEADER, self._source)

    def _both(self, depth: int) -> Expression:
        parts = [self._test(depth)]
        while self._keyword("AND"):
            parts.append(self._test(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _test(self, depth: int) -> Expression:
        if self.kind == "mark" and self.text == "(" and depth < _DEPTH_MAX:
            self._advance()
            inner = self.either(depth + 1)
            if self.kind != "mark" or self.text != ")":
                raise self.refusal()
            self._advance()
            return inner
        key = self._take("key") if self.kind == "key" else self._take("word")
        return Comparison(key, self._take("operator"), self._take("value"))

    def _take(self, kind: str) -> str:
        if self.kind != kind:
            raise self.refusal()
        text = self.text
        self._advance()
        return text

    def _keyword(self, word: str) -> bool:
        if self.kind != "word" or self.text.upper() != word:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        if self._at == len(self._source):
            self.kind = None
            return
        found = _TOKEN.match(self._source, self._at)
        if found is None:
            raise self.refusal()
        self._at = found.end()
        self.kind = found.lastgroup
        assert self.kind is not None
        self.text = found[self.kind]
