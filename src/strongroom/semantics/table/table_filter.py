"""$filter of the Table service: its grammar, as a tree of comparisons.

    either     = both *( "or" both )
    both       = negated *( "and" negated )
    negated    = "not" negated / "(" either ")" / comparison / property / boolean
    comparison = operand operator operand         one side a property, the other a literal
    operator   = "eq" / "ne" / "gt" / "ge" / "lt" / "le"
    boolean    = "true" / "false"                 in any case
    literal    = 'text' / 1 / 1L / 1.5 / 1e3 / boolean / datetime'...' / guid'...'
               / X'0A0B' / binary'0A0B'           a quote inside a text is doubled

Which entities match: table_predicate.py; where matches can lie: table_intervals.py. Source:
"Querying tables and entities", "Query operators supported for the Table service". Other words are
case-sensitive. `True` and the like name a property if the other side of a comparison is a constant.
Microsoft's limit of 15 comparisons is not enforced; a limit of 100 is.
"""

from __future__ import annotations

import enum
import math
import re
from functools import lru_cache
from typing import Final, NoReturn

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.table import edm, property_names
from strongroom.semantics.table.edm import EdmType

COMPARISONS_MAX: Final = 100
_CHARS_MAX: Final = 16 * 1024
# A query that a program builds may be nested as deeply as it has comparisons.
_DEPTH_MAX: Final = 100
_INT64: Final = range(-(2**63), 2**63)


class Operator(enum.Enum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"


class Family(enum.Enum):
    """The kinds of values that can be compared with each other, and their Python form.

    STRING: str; NUMBER: int or float, for all three types of numbers; BOOLEAN: bool; DATETIME:
    ticks; GUID: the lower-case text with dashes; BINARY: bytes.
    """

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    GUID = "guid"
    BINARY = "binary"


class Literal(msgspec.Struct, frozen=True):
    family: Family
    value: str | int | float | bool | bytes


class Comparison(msgspec.Struct, frozen=True):
    """`name operator literal`; a literal on the left has been moved to the right."""

    name: str
    operator: Operator
    literal: Literal


class BooleanProperty(msgspec.Struct, frozen=True):
    """A boolean property without an operator: it must be true."""

    name: str


class Constant(msgspec.Struct, frozen=True):
    """`true` or `false` without an operator: all entities match, or none."""

    value: bool


class Not(msgspec.Struct, frozen=True):
    part: Expression


class Conjunction(msgspec.Struct, frozen=True):
    """Every part holds; no part is itself a `Conjunction`."""

    parts: tuple[Expression, ...]


class Disjunction(msgspec.Struct, frozen=True):
    """At least one part holds; no part is itself a `Disjunction`."""

    parts: tuple[Expression, ...]


Expression = Comparison | BooleanProperty | Constant | Not | Conjunction | Disjunction

_MIRRORED: Final = {
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
}
_BOOLEANS: Final = {"true": True, "false": False}
_OPERATORS: Final = {operator.value: operator for operator in Operator}
_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "div", "mod", "has", "in"})
_RESERVED: Final = frozenset({"and", "or", "not", "null", *_OPERATORS})
_TOKEN: Final = re.compile(
    r"""(?P<mark>[()])|(?P<prefix>[A-Za-z]+)'(?P<typed>[^']*(?:''[^']*)*)'"""
    r"""|'(?P<text>[^']*(?:''[^']*)*)'"""
    r"""|(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]?(?![\w.]))"""
    # The word's other characters are checked for letters afterwards.
    r"""|(?P<word>(?:[A-Za-z_]|[^\x00-\x7f\s])(?:[A-Za-z0-9_]|[^\x00-\x7f\s])*)"""
)
_SPACE: Final = re.compile(r"\s*")


@lru_cache(maxsize=256)
def parse(text: str) -> Expression:
    """The expression of a filter, decoded from the URL.

    Raises: StorageError InvalidInput, with the position (from 1) of the error; NotImplemented for
        functions and arithmetic, with their name.
    """
    if len(text) > _CHARS_MAX:
        raise _invalid(f"It is longer than {_CHARS_MAX} characters.")
    parser = _Parser(text)
    expression = parser.either(0)
    parser.finish()
    return expression


def names(expression: Expression) -> tuple[str, ...]:
    """The properties that an expression names, in order, each once."""
    if isinstance(expression, Comparison | BooleanProperty):
        return (expression.name,)
    if isinstance(expression, Constant):
        return ()
    parts = (expression.part,) if isinstance(expression, Not) else expression.parts
    return tuple(dict.fromkeys(name for part in parts for name in names(part)))


def _invalid(reason: str) -> StorageError:
    message = f"{errors.INVALID_INPUT.message} The $filter cannot be understood. {reason}"
    return StorageError(errors.INVALID_INPUT, message)


class _Parser:
    """A recursive-descent parser of one text; `_found` is the next token, None at the end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = self._end = self._comparisons = 0
        self._found: re.Match[str] | None = None
        self._advance()

    def either(self, depth: int) -> Expression:
        parts = [self._both(depth)]
        while self._keyword("or"):
            parts.append(self._both(depth))
        if len(parts) == 1:
            return parts[0]
        flat = (part.parts if isinstance(part, Disjunction) else (part,) for part in parts)
        return Disjunction(tuple(inner for group in flat for inner in group))

    def finish(self) -> None:
        if self._found is not None:
            self._refuse("'and' or 'or' was expected")

    def _both(self, depth: int) -> Expression:
        parts = [self._negated(depth)]
        while self._keyword("and"):
            parts.append(self._negated(depth))
        if len(parts) == 1:
            return parts[0]
        flat = (part.parts if isinstance(part, Conjunction) else (part,) for part in parts)
        return Conjunction(tuple(inner for group in flat for inner in group))

    def _negated(self, depth: int) -> Expression:
        if depth > _DEPTH_MAX:
            self._refuse(f"more than {_DEPTH_MAX} levels are open")
        if self._keyword("not"):
            return Not(self._negated(depth + 1))
        if self._mark("("):
            inner = self.either(depth + 1)
            if not self._mark(")"):
                self._refuse("')' was expected")
            return inner
        return self._comparison()

    def _comparison(self) -> Expression:
        self._comparisons += 1
        if self._comparisons > COMPARISONS_MAX:
            self._refuse(f"there are more than {COMPARISONS_MAX} comparisons")
        left = self._operand()
        operator = self._operator()
        if operator is None:
            return self._alone(left)
        at = self._at
        right = self._operand()
        if isinstance(left, str) and isinstance(right, str):
            left, right = _with_boolean(left, right)
        if isinstance(left, str) and isinstance(right, Literal):
            return Comparison(left, operator, right)
        if isinstance(left, Literal) and isinstance(right, str):
            return Comparison(right, _MIRRORED.get(operator, operator), left)
        self._refuse("one side must be a property and the other a constant", at)

    def _alone(self, operand: str | Literal) -> Expression:
        constant = _boolean(operand) if isinstance(operand, str) else operand
        if constant is None:
            return BooleanProperty(str(operand))
        if not isinstance(constant.value, bool):
            self._refuse("an operator was expected")
        return Constant(constant.value)

    def _operand(self) -> str | Literal:
        token, at = self._found, self._at
        if token is None or token["mark"] is not None:
            self._refuse("a property or a constant was expected")
        word = token["word"]
        self._advance()
        if word is None:
            return self._literal(token, at)
        if word.islower() and (boolean := _boolean(word)) is not None:
            return boolean
        if self._found is not None and self._found["mark"] == "(" and word not in _RESERVED:
            raise _not_implemented(f"The function '{word}'")
        if word in _RESERVED:
            self._refuse(f"'{word}' cannot be compared", at)
        return word

    def _operator(self) -> Operator | None:
        word = None if self._found is None else self._found["word"]
        if word in _ARITHMETIC:
            raise _not_implemented(f"The operator '{word}'")
        operator = None if word is None else _OPERATORS.get(word)
        if operator is not None:
            self._advance()
        return operator

    def _literal(self, token: re.Match[str], at: int) -> Literal:
        literal: Literal | None
        if token["text"] is not None:
            return Literal(Family.STRING, token["text"].replace("''", "'"))
        if token["number"] is not None:
            literal = _number(token["number"])
        else:
            literal = _typed(token["prefix"], token["typed"])
        if literal is None:
            self._refuse(f"{_quoted(token[0])} is not a constant", at)
        return literal

    def _keyword(self, word: str) -> bool:
        if self._found is None or self._found["word"] != word:
            return False
        self._advance()
        return True

    def _mark(self, mark: str) -> bool:
        if self._found is None or self._found["mark"] != mark:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        space = _SPACE.match(self._source, self._end)
        assert space is not None
        self._at = space.end()
        self._found = _TOKEN.match(self._source, self._at)
        if self._found is not None and _is_readable(self._found):
            self._end = self._found.end()
        elif self._at < len(self._source):
            self._refuse(f"{_quoted(self._source[self._at :])} cannot be read")

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        position = (self._at if at is None else at) + 1
        raise _invalid(f"At position {position}: {what}.")


def _boolean(word: str) -> Literal | None:
    value = _BOOLEANS.get(word.lower())
    return None if value is None else Literal(Family.BOOLEAN, value)


def _with_boolean(left: str, right: str) -> tuple[str | Literal, str | Literal]:
    """The two sides of an operator, given as words. One may be a Boolean constant: the right one,
    if it is `True` or the like, else the left one."""
    constant = _boolean(right)
    return (left, constant) if constant is not None else (_boolean(left) or left, right)


def _is_readable(token: re.Match[str]) -> bool:
    word = token["word"]
    return word is None or property_names.is_name(word)


def _not_implemented(what: str) -> StorageError:
    return StorageError(errors.NOT_IMPLEMENTED, f"{what} is not supported in $filter.")


def _quoted(text: str) -> str:
    return "'" + text[:32].encode("unicode_escape").decode("ascii") + "'"


def _number(text: str) -> Literal | None:
    """An Int32 or Int64 (with or without its L) or a Double; None when it is none of them."""
    digits, suffix = (text[:-1], text[-1]) if text[-1].isalpha() else (text, "")
    if suffix in ("", "L", "l") and digits.lstrip("+-").isdigit():
        value = edm.parse_integer(digits)
        # A range tests None by comparing it with each of its members.
        if value is None or value not in _INT64:
            return None
        return Literal(Family.NUMBER, value)
    number = float(digits)
    if suffix not in ("", "d", "D", "f", "F") or math.isinf(number):
        return None
    return Literal(Family.NUMBER, number)


def _typed(prefix: str, text: str) -> Literal | None:
    """The literal `datetime'...'` and the like; None when the value is invalid for the type."""
    try:
        if prefix in ("X", "x", "binary"):
            return Literal(Family.BINARY, edm.parse_hex(text))
        if prefix == "datetime":
            return Literal(Family.DATETIME, edm.parse_time(text))
        if prefix == "guid":
            return Literal(Family.GUID, str(edm.parse(text, EdmType.GUID)))
    except ValueError:
        # OutOfRange is a ValueError too.
        return None
    return None
