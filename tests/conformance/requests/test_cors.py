"""Cross-origin requests: rules B-COR-*."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.requests.test_service_properties import put

A, B = "http://a.example", "https://b.example:8080"
WILD = "https://*.wild.example"
Rules = Callable[..., Client]


def rule(origins: str, methods: str, headers: str = "", exposed: str = "") -> str:
    """One CorsRule."""
    return (
        f"<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}"
        f"</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}"
        "</ExposedHeaders><MaxAgeInSeconds>77</MaxAgeInSeconds></CorsRule>"
    )


@pytest.fixture
def rules(account: Client) -> Rules:
    """Gives an account these rules, a container `con` and a blob `b`."""

    def make(*given: str) -> Client:
        expect(put(account, f"<Cors>{''.join(given)}</Cors>"), 202)
        expect(account.put("/con?restype=container"), 201)
        expect(account.put("/con/b", {**PUT_BLOB, "x-ms-meta-a": "1"}, b"text"), 201)
        return account

    return make


def preflight(
    client: Client, origin: str | None, method: str | None, headers: str | None = None
) -> Answer:
    """A browser's question, without credentials, about something that need not exist."""
    given: dict[str, str | None] = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
        "x-ms-version": None,
    }
    return client.send("OPTIONS", "/absent/absent", given, auth=None)


def test_a_preflight_that_lacks_a_header(rules: Rules) -> None:
    """B-COR-01."""
    client = rules(rule("*", "GET"))
    for origin, method in ((None, "GET"), (A, None), (None, None), ("", "GET")):
        answer = expect(preflight(client, origin, method), 400, "InvalidHeaderValue")
        assert answer.error["Message"].startswith("A required CORS header is not present.")


def test_no_rules_at_all(account: Client) -> None:
    """B-COR-02."""
    expect(preflight(account, A, "GET"), 403, "CorsPreflightFailure")


@pytest.mark.parametrize(
    ("origin", "method", "headers"),
    [
        (B, "GET", None),
        (A.upper(), "GET", None),
        (A + "/", "GET", None),
        (A, "DELETE", None),
        (A, "get", None),
        (A, "GET", "x-other"),
        (A, "GET", "x-ms-meta-a, x-other"),
    ],
)
def test_no_rule_matches(rules: Rules, origin: str, method: str, headers: str | None) -> None:
    """B-COR-02."""
    client = rules(rule(A, "GET,PUT", "x-ms-meta-*"))
    answer = preflight(client, origin, method, headers)
    expect(answer, 403, "CorsPreflightFailure")
    assert answer.get("Access-Control-Allow-Origin") is None


def test_a_rule_for_an_origin(rules: Rules) -> None:
    """B-COR-03."""
    client = rules(rule(f"{B},{A}", "GET,PUT", "x-ms-meta-*"), rule("*", "GET,DELETE", "*"))
    answer = expect(preflight(client, A, "PUT", "x-ms-meta-a"), 200)
    assert answer.body == b""
    assert answer["Access-Control-Allow-Origin"] == A
    assert answer["Access-Control-Allow-Credentials"] == "true"
    assert "PUT" in answer["Access-Control-Allow-Methods"]
    assert "x-ms-meta-a" in answer["Access-Control-Allow-Headers"].lower()
    assert answer["Access-Control-Max-Age"] == "77"


def test_the_first_rule_that_matches(rules: Rules) -> None:
    """B-COR-03: a rule for every origin says `*` and gives no credentials."""
    client = rules(rule(A, "PUT"), rule("*", "GET,DELETE", "*"), rule(A, "GET"))
    for origin, method in ((A, "GET"), (A, "DELETE"), (B, "GET")):
        answer = expect(preflight(client, origin, method, "anything"), 200)
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert answer.get("Access-Control-Allow-Credentials") is None


@pytest.mark.parametrize(
    ("allowed", "asked", "passes"),
    [
        ("x-ms-meta-a", "X-MS-Meta-A", True),
        ("X-Ms-Meta-A", "x-ms-meta-a", True),
        ("x-ms-meta-a", "x-ms-meta-ab", False),
        ("x-ms-meta-*", "x-ms-meta-ab,X-MS-META-z", True),
        ("x-ms-meta-*", "x-ms-met", False),
        ("*", "whatever", True),
        ("a,b", "b, a", True),
        ("", "a", False),
        ("", "", True),
    ],
)
def test_allowed_headers(rules: Rules, allowed: str, asked: str, passes: bool) -> None:
    """B-COR-04."""
    client = rules(rule(A, "GET", allowed))
    answer = preflight(client, A, "GET", asked)
    expect(answer, *((200,) if passes else (403, "CorsPreflightFailure")))


def test_an_actual_request(rules: Rules) -> None:
    """B-COR-05."""
    client = rules(rule(A, "GET,PUT", exposed="x-ms-meta-*,ETag,x-absent"))
    answer = expect(client.get("/con/b", {"Origin": A}), 200)
    assert answer.body == b"text"
    assert answer["Access-Control-Allow-Origin"] == A
    assert answer["Access-Control-Allow-Credentials"] == "true"
    exposed = {name.lower() for name in answer["Access-Control-Expose-Headers"].split(",")}
    assert exposed == {"x-ms-meta-a", "etag"}


def test_a_refused_request(rules: Rules) -> None:
    """B-COR-05: is answered with them too."""
    client = rules(rule(A, "GET,PUT", exposed="x-ms-request-id,x-ms-error-code"))
    for answer in (
        expect(client.get("/con/absent", {"Origin": A}), 404, "BlobNotFound"),
        expect(client.get("/con/b", {"Origin": A}, auth=None), 401, "NoAuthenticationInformation"),
    ):
        assert answer["Access-Control-Allow-Origin"] == A
        assert answer["Access-Control-Allow-Credentials"] == "true"
        exposed = {name.lower() for name in answer["Access-Control-Expose-Headers"].split(",")}
        assert exposed == {"x-ms-request-id", "x-ms-error-code"}


def test_an_actual_request_under_a_rule_for_all(rules: Rules) -> None:
    """B-COR-05."""
    client = rules(rule("*", "GET", exposed="*"))
    answer = expect(client.get("/con/b", {"Origin": B}), 200)
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer.get("Access-Control-Allow-Credentials") is None
    exposed = {name.lower() for name in answer["Access-Control-Expose-Headers"].split(",")}
    assert {"etag", "last-modified", "x-ms-meta-a", "x-ms-request-id"} <= exposed


@pytest.mark.parametrize(("origin", "method"), [(B, "GET"), (A, "DELETE")])
def test_an_actual_request_that_no_rule_matches(rules: Rules, origin: str, method: str) -> None:
    """B-COR-06: the request is served without CORS headers."""
    client = rules(rule(A, "GET", exposed="*"))
    answer = client.send(method, "/con/b", {"Origin": origin})
    assert answer.status in (200, 202)
    assert not [name for name in answer.names() if name.startswith("access-control")]
    assert answer["Vary"] == "Origin"


def test_without_rules_nothing_is_said(account: Client) -> None:
    """B-COR-06: `Vary` is for accounts that have rules."""
    answer = expect(account.get("/?comp=list", {"Origin": A}), 200)
    assert answer.get("Vary") is None
    assert not [name for name in answer.names() if name.startswith("access-control")]


def test_a_wildcard_stands_for_subdomains(rules: Rules) -> None:
    """B-COR-07: on every service the same."""
    client = rules(rule("http://*.contoso.com, http://www.fabrikam.com", "GET,PUT", "*", "*"))
    for origin in ("http://foo.contoso.com", "http://a.b.contoso.com", "http://www.fabrikam.com"):
        for answer in (preflight(client, origin, "PUT"), client.get("/con/b", {"Origin": origin})):
            expect(answer, 200)
            assert answer["Access-Control-Allow-Origin"] == origin
            assert answer["Access-Control-Allow-Credentials"] == "true"
            assert answer["Vary"] == "Origin"
    for origin in ("http://contoso.com", "https://foo.contoso.com", "http://foo.contoso.com:81"):
        expect(preflight(client, origin, "PUT"), 403, "CorsPreflightFailure")
        answer = expect(client.get("/con/b", {"Origin": origin}), 200)
        assert answer.get("Access-Control-Allow-Origin") is None
