"""The expression of x-ms-if-tags: its grammar, and whether a blob's tags satisfy it.

    expression   = conjunction *( "OR" conjunction )
    conjunction  = test *( "AND" test )
    test         = "(" expression ")" / key operator "'" value "'"
    key          = name / DQUOTE characters DQUOTE
    operator     = "=" / "<>" / ">" / ">=" / "<" / "<="

Find Blobs by Tags has a smaller grammar of the same tokens (semantics/blob/tag_queries.py). So a
`Tokens` takes the error for an invalid text as an argument.

Source: "Specifying conditional headers for Blob service operations", x-ms-if-tags. Comparison is
ordinal; a missing tag satisfies no test.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.errors.core import invalid_header

HEADER: Final = "x-ms-if-tags"
_CHARS_MAX: Final = 8192
_DEPTH_MAX: Final = 16
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[()])|(?P<operator><>|<=|>=|=|<|>)|'(?P<value>[^']*)'"""
    r"""|"(?P<key>[^"]+)"|(?P<at>@[A-Za-z]+)|(?P<word>[A-Za-z0-9_.:/+\-]+))"""
)
OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class TagComparison(msgspec.Struct, frozen=True):
    """`key operator 'value'`."""

    key: str
    operator: str
    value: str


class TagConjunction(msgspec.Struct, frozen=True):
    """Every part holds."""

    parts: tuple[Expression, ...]


class TagDisjunction(msgspec.Struct, frozen=True):
    """At least one part holds."""

    parts: tuple[Expression, ...]


Expression = TagComparison | TagConjunction | TagDisjunction


@lru_cache(maxsize=64)
def parse(text: str) -> Expression:
    tokens = Tokens(text, lambda: invalid_header(HEADER, text))
    parser = _Parser(tokens)
    expression = parser.either(0)
    if tokens.kind is not None:
        raise tokens.refusal()
    return expression


def matches(expression: Expression, tags: Mapping[str, str]) -> bool:
    if isinstance(expression, TagComparison):
        value = tags.get(expression.key)
        return value is not None and OPERATORS[expression.operator](value, expression.value)
    if isinstance(expression, TagConjunction):
        return all(matches(part, tags) for part in expression.parts)
    return any(matches(part, tags) for part in expression.parts)


class Tokens:
    """The tokens of one text; `kind` and `text` describe the next token.

    Kinds: `mark` (a parenthesis), `operator`, `value`, `key` (in double quotes), `word`, `at` (a
    word after `@`); None at the end.

    Arguments:
        source: the text, of at most 8192 characters.
        refusal: makes the error for an invalid text.
    """

    def __init__(self, source: str, refusal: Callable[[], Exception]) -> None:
        self.refusal = refusal
        self.kind: str | None = None
        self.text = ""
        self._source = source.strip()
        self._at = 0
        if len(source) > _CHARS_MAX:
            raise refusal()
        self.advance()

    def take(self, kind: str) -> str:
        """The next token must be of this kind."""
        if self.kind != kind:
            raise self.refusal()
        text = self.text
        self.advance()
        return text

    def take_key(self) -> str:
        """Take the next token as a tag's key, with or without quotes."""
        return self.take("key") if self.kind == "key" else self.take("word")

    def take_keyword(self, word: str) -> bool:
        """Take the next token if it is this word, in any case. Return whether it was."""
        if self.kind != "word" or self.text.upper() != word:
            return False
        self.advance()
        return True

    def advance(self) -> None:
        if self._at == len(self._source):
            self.kind = None
            return
        match = _TOKEN.match(self._source, self._at)
        if match is None:
            raise self.refusal()
        self._at = match.end()
        self.kind = match.lastgroup
        assert self.kind is not None
        self.text = match[self.kind]


class _Parser:
    """A recursive-descent parser over the tokens of one text."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def either(self, depth: int) -> Expression:
        parts = [self._both(depth)]
        while self._tokens.take_keyword("OR"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else TagDisjunction(tuple(parts))

    def _both(self, depth: int) -> Expression:
        parts = [self._test(depth)]
        while self._tokens.take_keyword("AND"):
            parts.append(self._test(depth))
        return parts[0] if len(parts) == 1 else TagConjunction(tuple(parts))

    def _test(self, depth: int) -> Expression:
        tokens = self._tokens
        if tokens.kind == "mark" and tokens.text == "(" and depth < _DEPTH_MAX:
            tokens.advance()
            inner = self.either(depth + 1)
            if tokens.kind != "mark" or tokens.text != ")":
                raise tokens.refusal()
            tokens.advance()
            return inner
        return TagComparison(tokens.take_key(), tokens.take("operator"), tokens.take("value"))
