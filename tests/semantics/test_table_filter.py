"""$filter: its grammar, its expression tree, and its errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.semantics.table import table_filter
from strongroom.semantics.table.table_filter import (
    BooleanProperty,
    Comparison,
    Conjunction,
    Constant,
    Disjunction,
    Expression,
    Family,
    Literal,
    Not,
    Operator,
    parse,
)
from tests.refusals import outcome


def equal(name: str, value: str | int | float | bool | bytes, family: Family) -> Comparison:
    return Comparison(name, Operator.EQ, Literal(family, value))


ONE = equal("A", 1, Family.NUMBER)
TWO = equal("B", 2, Family.NUMBER)
THREE = equal("C", 3, Family.NUMBER)

TREES: list[tuple[str, Expression]] = [
    ("A eq 1", ONE),
    ("  A\teq\n1  ", ONE),
    ("(A eq 1)", ONE),
    ("((A eq 1))", ONE),
    ("1 eq A", ONE),
    ("1 lt A", Comparison("A", Operator.GT, Literal(Family.NUMBER, 1))),
    ("1 ne A", Comparison("A", Operator.NE, Literal(Family.NUMBER, 1))),
    ("A", BooleanProperty("A")),
    ("not A", Not(BooleanProperty("A"))),
    ("not(A)", Not(BooleanProperty("A"))),
    ("not A eq 1", Not(ONE)),
    ("A eq 1 and B eq 2", Conjunction((ONE, TWO))),
    ("A eq 1 or B eq 2 and C eq 3", Disjunction((ONE, Conjunction((TWO, THREE))))),
    ("A eq 1 and B eq 2 or C eq 3", Disjunction((Conjunction((ONE, TWO)), THREE))),
    ("(A eq 1 or B eq 2) and C eq 3", Conjunction((Disjunction((ONE, TWO)), THREE))),
    ("((A eq 1) and (B eq 2)) and (C eq 3)", Conjunction((ONE, TWO, THREE))),
    ("A eq 1 or (B eq 2 or C eq 3)", Disjunction((ONE, TWO, THREE))),
    ("not A eq 1 and B eq 2", Conjunction((Not(ONE), TWO))),
    ("(A eq 1)and(B eq 2)", Conjunction((ONE, TWO))),
    ("true", Constant(True)),
    ("FALSE", Constant(False)),
    ("not True", Not(Constant(True))),
    (
        "(true and A eq 1) or false",
        Disjunction((Conjunction((Constant(True), ONE)), Constant(False))),
    ),
    ("A eq True", equal("A", True, Family.BOOLEAN)),
    ("A eq FALSE", equal("A", False, Family.BOOLEAN)),
    ("True ne A", Comparison("A", Operator.NE, Literal(Family.BOOLEAN, True))),
    ("True eq true", equal("True", True, Family.BOOLEAN)),
    ("True eq 1", equal("True", 1, Family.NUMBER)),
    ("TRUE eq False", equal("TRUE", False, Family.BOOLEAN)),
    ("A eq ''", equal("A", "", Family.STRING)),
    ("A eq 'it''s'", equal("A", "it's", Family.STRING)),
    ("A eq ''''", equal("A", "'", Family.STRING)),
    ("A eq 'and'", equal("A", "and", Family.STRING)),
    ("A eq '(é)'", equal("A", "(é)", Family.STRING)),
    ("A eq -5", equal("A", -5, Family.NUMBER)),
    ("A eq +5", equal("A", 5, Family.NUMBER)),
    ("A eq 5L", equal("A", 5, Family.NUMBER)),
    ("A eq 0000000000000000000000000000000007", equal("A", 7, Family.NUMBER)),
    ("A eq -" + "0" * 9000 + "7L", equal("A", -7, Family.NUMBER)),
    ("A eq 5000000000", equal("A", 5_000_000_000, Family.NUMBER)),
    ("A eq -9223372036854775808L", equal("A", -(2**63), Family.NUMBER)),
    ("A eq 1.5", equal("A", 1.5, Family.NUMBER)),
    ("A eq -1.5e+3", equal("A", -1500.0, Family.NUMBER)),
    ("A eq 1e3", equal("A", 1000.0, Family.NUMBER)),
    ("A eq .5", equal("A", 0.5, Family.NUMBER)),
    ("A eq 2d", equal("A", 2.0, Family.NUMBER)),
    ("A eq true", equal("A", True, Family.BOOLEAN)),
    ("A eq false", equal("A", False, Family.BOOLEAN)),
    (
        "A eq datetime'2008-07-10T00:00:00Z'",
        equal("A", 633_512_448_000_000_000, Family.DATETIME),
    ),
    (
        "A eq guid'8F9A3F0E-0000-4000-8000-00000000ABCD'",
        equal("A", "8f9a3f0e-0000-4000-8000-00000000abcd", Family.GUID),
    ),
    ("A eq X'0aFf'", equal("A", b"\x0a\xff", Family.BINARY)),
    ("A eq binary'0AFF'", equal("A", b"\x0a\xff", Family.BINARY)),
    ("A eq X''", equal("A", b"", Family.BINARY)),
    ("Größe eq 1", equal("Größe", 1, Family.NUMBER)),
    ("_a1 eq 1", equal("_a1", 1, Family.NUMBER)),
    ("eqs eq 1", equal("eqs", 1, Family.NUMBER)),
    ("nota and order", Conjunction((BooleanProperty("nota"), BooleanProperty("order")))),
]


@pytest.mark.parametrize(("text", "expected"), TREES)
def test_a_filter_becomes_a_tree(text: str, expected: Expression) -> None:
    found = parse(text)
    assert found == expected
    assert repr(found) == repr(expected)  # 1 == True == 1.0


# text, position, part of the message
BAD = [
    ("", 1, "a property or a constant was expected"),
    ("   ", 4, "a property or a constant was expected"),
    ("A eq", 5, "a property or a constant was expected"),
    ("A eq 1 and", 11, "a property or a constant was expected"),
    ("and A", 1, "'and' cannot be compared"),
    ("A eq 1 B eq 2", 8, "'and' or 'or' was expected"),
    ("A eq 1)", 7, "'and' or 'or' was expected"),
    ("(A eq 1", 8, "')' was expected"),
    ("()", 2, "a property or a constant was expected"),
    ("A eq 'b", 6, r"''b' cannot be read"),
    ("A = 1", 3, "'= 1' cannot be read"),
    ("A/B eq 1", 2, "'/B eq 1' cannot be read"),
    ("A EQ 1", 3, "'and' or 'or' was expected"),
    ("A eq 1 AND B eq 2", 8, "'and' or 'or' was expected"),
    ("A eq B", 6, "one side must be a property"),
    ("1 eq 1", 6, "one side must be a property"),
    ("1", 2, "an operator was expected"),
    ("true eq false", 9, "one side must be a property"),
    ("true true", 6, "'and' or 'or' was expected"),
    ("true eq", 8, "a property or a constant was expected"),
    ("A eq null", 6, "'null' cannot be compared"),
    ("A eq eq 1", 6, "'eq' cannot be compared"),
    ("A eq (1)", 6, "a property or a constant was expected"),
    ("A eq 9223372036854775808", 6, "'9223372036854775808' is not a constant"),
    ("A eq " + "9" * 400, 6, "is not a constant"),
    ("A eq 1e999", 6, "'1e999' is not a constant"),
    ("A eq 1x", 6, "'1x' is not a constant"),
    ("A eq 1.5L", 6, "'1.5L' is not a constant"),
    ("A eq 1.5m", 6, "'1.5m' is not a constant"),
    ("A eq 1.2.3", 6, "'1.2.3' cannot be read"),
    ("A eq X'0'", 6, "is not a constant"),
    ("A eq X'0 0'", 6, "is not a constant"),
    ("A eq X'zz'", 6, "is not a constant"),
    ("A eq X'0a\t0b'", 6, "is not a constant"),
    ("A eq X'\uff10\uff11'", 6, "is not a constant"),
    ("A eq datetime'2021-01-01T00:00:00+99:99'", 6, "is not a constant"),
    ("A eq datetime'\u0662021-01-01'", 6, "is not a constant"),
    ("A eq guid'1'", 6, "is not a constant"),
    ("A eq datetime'yesterday'", 6, "is not a constant"),
    ("A eq datetime'2021-02-30'", 6, "is not a constant"),
    ("A eq datetime'1600-01-01'", 6, "is not a constant"),
    ("A eq time'12:00'", 6, "is not a constant"),
    ("A eq 1 and \x00", 12, r"'\x00' cannot be read"),
    ("(" * 102 + "A eq 1" + ")" * 102, 102, "more than 100 levels are open"),
    ("not " * 102 + "A", 405, "more than 100 levels are open"),
    (" or ".join(["A eq 1"] * 101), 1001, "there are more than 100 comparisons"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "position", "what"), BAD)
def test_a_filter_that_cannot_be_read(text: str, position: int, what: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse(text)
    assert (caught.value.row.code, caught.value.row.status) == ("InvalidInput", 400)
    assert f"At position {position}: " in caught.value.message
    assert what in caught.value.message


UNSUPPORTED = [
    ("startswith(A,'b')", "The function 'startswith'"),
    ("substringof('b', A)", "The function 'substringof'"),
    ("A eq 1 and endswith(B, 'x') eq true", "The function 'endswith'"),
    ("A add 1 eq 2", "The operator 'add'"),
    ("A mod 2", "The operator 'mod'"),
    ("year(Timestamp) eq 2020", "The function 'year'"),
]


@pytest.mark.parametrize(("text", "what"), UNSUPPORTED)
def test_what_the_service_does_not_have_is_named(text: str, what: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse(text)
    assert caught.value.row.status == 501
    assert what in caught.value.message


def test_a_hundred_comparisons_are_taken_also_one_inside_the_other() -> None:
    text = "A eq 0"
    for number in range(1, 100):
        text = f"({text}) or A eq {number}"
    found = parse(text)
    assert isinstance(found, Disjunction) and len(found.parts) == 100


def test_a_long_filter_is_refused() -> None:
    assert outcome(lambda: parse(f"A eq '{'x' * 16384}'")) == "400 InvalidInput"
    assert outcome(lambda: parse(f"A eq '{'x' * 16000}'")) == "ok"


def test_the_properties_of_a_filter_are_named_once() -> None:
    found = parse("not (B eq 1) and (A or B gt 0) and RowKey eq 'x'")
    assert table_filter.names(found) == ("B", "A", "RowKey")


WORDS = (
    *("A", "eq", "ne", "gt", "and", "or", "not", "(", ")", "'", "''", "'x'", "1", "-", "1.5", "L"),
    *("datetime'", "guid'", "X'0A'", "true", "null", "é", "\0", "\ud800", "startswith(", ",", "."),
)


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    assert outcome(lambda: parse(text)) in ("ok", "400 InvalidInput", "501 NotImplemented")
