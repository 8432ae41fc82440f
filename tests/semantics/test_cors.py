"""CORS: the limits of rules, preflight requests, actual requests."""

from __future__ import annotations

import pytest

from strongroom.semantics.core import cors
from strongroom.service_properties import CorsRule
from tests.refusals import outcome

A, B = "http://a.example", "https://b.example:8080"
RULES = (
    CorsRule((A,), ("GET", "PUT"), ("x-ms-meta-*", "content-type"), ("x-ms-*", "etag"), 60),
    CorsRule((A, B), ("GET",), ("*",), (), 5),
)
OPEN = (CorsRule(("*",), ("GET",), ("*",), ("*",), 200),)
FAILURE, HEADER = "403 CorsPreflightFailure", "400 InvalidHeaderValue"

PREFLIGHTS: list[tuple[str | None, str | None, tuple[str, ...], str]] = [
    (A, "GET", (), "60"),
    (A, "PUT", ("X-MS-Meta-Name", "Content-Type"), "60"),
    (A, "GET", ("x-other",), "5"),  # the first rule does not allow it, the second does
    (A, "PUT", ("x-other",), FAILURE),
    (A, "DELETE", (), FAILURE),
    (A.upper(), "GET", (), FAILURE),
    (B, "GET", (), "5"),
    (B, "PUT", (), FAILURE),
    ("http://a.example.evil", "GET", (), FAILURE),
    (None, "GET", (), HEADER),
    ("", "GET", (), HEADER),
    (A, None, (), HEADER),
]


@pytest.mark.parametrize(("origin", "method", "headers", "expected"), PREFLIGHTS)
def test_preflights(
    origin: str | None, method: str | None, headers: tuple[str, ...], expected: str
) -> None:
    if not expected.isdecimal():
        assert outcome(lambda: cors.preflight(RULES, origin, method, headers)) == expected
        return
    answer = dict(cors.preflight(RULES, origin, method, headers))
    assert answer["Access-Control-Allow-Origin"] == origin
    assert answer["Access-Control-Allow-Credentials"] == "true"
    assert answer["Access-Control-Allow-Methods"] == method
    assert answer["Access-Control-Max-Age"] == expected
    assert answer.get("Access-Control-Allow-Headers", "") == ",".join(headers)


SUBDOMAINS = ("http://*.contoso.com", "https://*.fabrikam.com:8080", "http://*", "http://w*.x.org")
ORIGINS: list[tuple[str, bool]] = [
    ("http://foo.contoso.com", True),
    ("http://a.b-c.Foo_1.contoso.com", True),
    ("http://contoso.com", False),
    ("http://.contoso.com", False),
    ("http://a..contoso.com", False),
    ("http://foocontoso.com", False),
    ("https://foo.contoso.com", False),
    ("HTTP://foo.contoso.com", False),
    ("http://foo.Contoso.com", False),
    ("http://foo.contoso.com:80", False),
    ("http://foo.contoso.com.evil", False),
    ("http://evil/.contoso.com", False),
    ("http://evil:80.contoso.com", False),
    ("http://user@a.contoso.com", False),
    ("http://evil?.contoso.com", False),
    ("http://é.contoso.com", False),
    ("http://*.contoso.com", True),  # as a text, as before
    ("https://a.fabrikam.com:8080", True),
    ("https://a.fabrikam.com", False),
    ("https://a.fabrikam.com:80801", False),
    ("http://any.example", False),
    ("http://www.x.org", False),
    ("null", False),
    ("", False),
]


@pytest.mark.parametrize(("origin", "covered"), ORIGINS)
def test_a_wildcard_stands_for_subdomains(origin: str, covered: bool) -> None:
    """B-COR-07."""
    rules = [CorsRule((pattern,), ("GET",)) for pattern in SUBDOMAINS]
    answer = dict(cors.actual(rules, origin or None, "GET", ()))
    assert answer.get("Access-Control-Allow-Origin") == (origin if covered else None)
    assert answer["Vary"] == "Origin"
    if covered:
        assert dict(cors.preflight(rules, origin, "GET", ()))["Vary"] == "Origin"
    elif origin:
        assert outcome(lambda: cors.preflight(rules, origin, "GET", ())) == FAILURE


def test_without_rules_every_preflight_fails() -> None:
    assert outcome(lambda: cors.preflight((), A, "GET", ())) == FAILURE


def test_any_origin_gets_no_credentials() -> None:
    answer = dict(cors.preflight(OPEN, B, "GET", ("x",)))
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer


RESPONSE = ("ETag", "x-ms-version", "Date")


def test_actual_requests() -> None:
    assert dict(cors.actual(RULES, A, "GET", RESPONSE)) == {
        "Access-Control-Allow-Origin": A,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": "ETag,x-ms-version",
        "Vary": "Origin",
    }
    assert dict(cors.actual(OPEN, A, "GET", RESPONSE)) == {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag,x-ms-version,Date",
    }


def test_requests_that_no_rule_answers_only_vary() -> None:
    assert cors.actual(RULES, None, "GET", RESPONSE) == (("Vary", "Origin"),)
    assert cors.actual(RULES, "http://c", "GET", RESPONSE) == (("Vary", "Origin"),)
    assert cors.actual((), A, "GET", RESPONSE) == ()


def test_at_most_five_rules() -> None:
    assert outcome(lambda: cors.check_rules([GOOD] * 6)) == "400 InvalidXmlDocument"


GOOD = CorsRule((A,), ("GET",))
LIMITS: list[tuple[list[CorsRule], bool]] = [
    ([], True),
    ([GOOD] * 5, True),
    ([CorsRule((), ("GET",))], False),
    ([CorsRule((A,), ())], False),
    ([CorsRule((A,), ("get",))], False),
    ([CorsRule((A,), ("BREW",))], False),
    ([CorsRule((A,), ("GET",), max_age_s=-1)], False),
    ([CorsRule(("h" * 256,), ("GET",))], True),
    ([CorsRule(("h" * 257,), ("GET",))], False),
    ([CorsRule((A,), ("GET",), ("a*", "b*"))], True),
    ([CorsRule((A,), ("GET",), ("a*", "b*", "c*"))], False),
    ([CorsRule((A,), ("GET",), (), ("a*", "b*", "c*"))], False),
    ([CorsRule((A,), ("GET",), tuple(f"h{number}" for number in range(64)))], True),
    ([CorsRule((A,), ("GET",), tuple(f"h{number}" for number in range(65)))], False),
    ([CorsRule(("h" * 250,), ("GET",), ("x" * 250,))] * 5, False),
]


@pytest.mark.parametrize(("rules", "valid"), LIMITS)
def test_limits_of_rules(rules: list[CorsRule], valid: bool) -> None:
    seen = outcome(lambda: cors.check_rules(rules))
    assert seen == ("ok" if valid else "400 InvalidXmlNodeValue")
