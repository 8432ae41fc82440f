"""Whose figures one sees: every field of every document, as each kind of viewer."""

from __future__ import annotations

import base64
import json
import time
import typing
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest

from strongroom.auth.accounts import Account
from strongroom.auth.roles import OPERATOR
from strongroom.clock import SystemClock
from strongroom.config import OAuth, RolesSource
from strongroom.servers.console.api import access, opens
from strongroom.servers.console.api.documents import (
    DOCUMENTS,
    Overview,
    SampledHour,
    ServerFigures,
    ServicePort,
)
from strongroom.servers.console.api.table import TABLE, UNSIGNED, EndpointNeeds
from strongroom.servers.console.marks import (
    ANYBODY,
    OWN,
    READABLE,
    SERVER,
    Mark,
    inner,
    marks,
    shown,
)
from strongroom.servers.console.viewers import Viewers
from strongroom.servers.requests.admission import ServiceContext
from strongroom.testing.server import InProcessServer
from strongroom.values import rfc1123
from tests.auth import tokens
from tests.conformance.signing import authorization
from tests.servers.console.served import (
    API,
    BANK,
    SHOP,
    VERSION,
    Answer,
    ServedConsole,
    serving,
    settings,
    with_console,
)

KEY_SEES = frozenset({ANYBODY, READABLE, OWN})
ROLE_SEES = frozenset({ANYBODY, READABLE})
ALL = frozenset(Mark)
READER, OPERATING, STRANGER = "reader-of-one-container", "operator", "stranger"


def every_document() -> list[type[msgspec.Struct]]:
    documents: tuple[type[msgspec.Struct], ...] = (
        *DOCUMENTS,
        *access.DOCUMENTS,
        *opens.DOCUMENTS,
    )
    return list({kind: None for document in documents for kind in inner(document)})


def example(hint: Any) -> Any:
    """A value of a type, unlike each default."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return example(inside[0])
    if origin is typing.Literal:
        return inside[0]
    if origin is tuple:
        return (example(inside[0]),)
    if inside:  # a union with None
        return example(next(one for one in inside if one is not type(None)))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return full(hint)
    return {str: "secret", int: 7, float: 7.5, bool: True}[hint]


def full(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """A document with a value in every field."""
    return kind(**{name: example(hint) for name, hint in typing.get_type_hints(kind).items()})


@pytest.mark.parametrize("kind", every_document(), ids=lambda kind: kind.__name__)
def test_every_field_says_whose_it_is(kind: type[msgspec.Struct]) -> None:
    assert set(marks(kind)) == {field.name for field in msgspec.structs.fields(kind)}


def test_a_field_without_a_mark_is_an_error() -> None:
    class Careless(msgspec.Struct):
        a: Annotated[int, OWN]
        b: int = 0

    class Twice(msgspec.Struct):
        a: Annotated[int, OWN, SERVER]

    for kind in (Careless, Twice):
        with pytest.raises(TypeError, match="must say once whose it is"):
            marks(kind)
        with pytest.raises(TypeError):
            shown(kind(1), ALL)


@pytest.mark.parametrize("visible", [KEY_SEES, ROLE_SEES])
@pytest.mark.parametrize("kind", every_document(), ids=lambda kind: kind.__name__)
def test_what_a_viewer_may_not_see_is_replaced(
    kind: type[msgspec.Struct], visible: frozenset[Mark]
) -> None:
    hidden = [name for name, mark in marks(kind).items() if mark not in visible]
    document = shown(full(kind), visible)
    for name in hidden:
        assert getattr(document, name) in (None, (), "", 0, False), name
    assert shown(full(kind), ALL) == full(kind)


def test_what_is_hidden_deep_inside_is_hidden_too() -> None:
    document = full(Overview)
    assert b"secret" in msgspec.json.encode(shown(document, ALL))
    plain = typing.cast("Overview", shown(document, ROLE_SEES))
    assert plain.server is None
    assert plain.services[0].requests_per_s is None
    assert plain.services[0].url == "secret"


ISSUED = {"aud": "https://storage.azure.com"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """Two accounts, an operator by role, a reader of one container."""
    roles = tmp_path_factory.mktemp("roles") / "roles.json"
    assignments = [
        {"principal": OPERATING, "role": OPERATOR, "account": "bank"},
        {
            "principal": READER,
            "role": "Storage Blob Data Reader",
            "account": "shop",
            "resource": "public",
        },
    ]
    roles.write_text(json.dumps({"assignments": assignments}))
    roles.chmod(0o600)
    more = {"oauth": OAuth(), "roles": RolesSource(roles, must_exist=True), "test_clock": True}
    with serving(SHOP, BANK, **more) as found:
        yield found


def by_token(served: ServedConsole, principal: str, target: str) -> Answer:
    token = tokens.token(oid=principal, **ISSUED)
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    return served.ask(f"{API}{target}", fields=fields)


def test_a_key_sees_its_own_account(served: ServedConsole) -> None:
    for account in (SHOP, BANK):
        who = served.api("who", account).json()
        assert who["kind"] == "key"
        assert (who["account"], who["is_operator"], who["scope"]) == (
            account.name,
            False,
            "account",
        )
        assert "server" not in who["may_see"]
        overview = served.api("overview", account).json()
        assert (overview["scope"], overview["server"]) == ("account", None)
        text = served.api("overview", account).body + served.api("history", account).body
        other = BANK if account is SHOP else SHOP
        assert other.name.encode() not in text


def test_an_operator_sees_the_server(served: ServedConsole) -> None:
    who = by_token(served, OPERATING, "who").json()
    assert (who["kind"], who["name"], who["is_operator"]) == ("bearer", OPERATING, True)
    overview = by_token(served, OPERATING, "overview").json()
    assert overview["scope"] == "server"
    assert [one["name"] for one in overview["server"]["accounts"]] == ["shop", "bank"]
    assert overview["server"]["memory_bytes"] > 1e6
    assert overview["server"]["disk"] is None
    assert by_token(served, OPERATING, "history").status == 200


def test_a_role_on_data_shows_no_figures(served: ServedConsole) -> None:
    who = by_token(served, READER, "who").json()
    assert (who["is_operator"], who["scope"]) == (False, None)
    assert set(who["may_see"]) == {"requests", "coordination"}
    for target in ("overview", "history"):
        answer = by_token(served, READER, target)
        assert (answer.status, answer.json()["error"]["needs"]) == (403, "account key")
        assert b"shop" not in answer.body
        assert b"bank" not in answer.body


def test_a_principal_without_a_role_sees_nothing(served: ServedConsole) -> None:
    for target in ("who", "overview", "history"):
        assert by_token(served, STRANGER, target).status == 403


ACCOUNT_SAS = "sv=2021-12-02&ss=b&srt=sco&sp=rl&se=2099-01-01T00%3A00%3A00Z&sig=AAAA"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.path)
def test_each_endpoint_needs_a_signature_unless_it_is_of_the_one_list(
    served: ServedConsole, row: Any
) -> None:
    target = API + row.path.replace("{number}", "1")
    body = b"{}" if row.method == "POST" else None
    bare = served.ask(target, row.method, body)
    by_sas = served.ask(f"{target}?{ACCOUNT_SAS}", row.method, body)
    if row.path in UNSIGNED:
        assert row.needs is EndpointNeeds.ANYONE
        assert bare.status not in (401, 403)
        return
    assert bare.status == 401
    assert bare.json()["error"]["needs"] == "sign-in"
    assert by_sas.status == 403
    assert by_sas.json()["error"]["needs"] == "account key"
    for answer in (bare, by_sas):
        assert answer.headers["cache-control"] == "no-store"
        assert b"shop" not in answer.body


def test_a_wrong_signature_says_what_was_signed_and_shows_no_signature(
    served: ServedConsole,
) -> None:
    answer = served.api("who", Account("shop", (b"wrong",)))
    assert answer.status == 403
    error = answer.json()["error"]
    assert error["code"] == "AuthenticationFailed"
    assert "/shop/.strongroom/console/v1/who" in error["text"]
    assert "'(masked)'" in error["text"]


def test_the_query_is_signed(served: ServedConsole) -> None:
    assert served.api("who?account=shop").status == 200
    stale = served.signed(f"{API}who")
    assert stale.status == 200
    date = rfc1123(SystemClock().wall_ticks())
    pairs = [("x-ms-date", date), ("x-ms-version", VERSION)]
    key = base64.b64encode(SHOP.keys[0]).decode()
    for scheme, signed, status in (
        ("SharedKey", f"{API}who?account=bank", 403),
        ("SharedKeyLite", f"{API}who?account=shop", 403),
        ("SharedKey", f"{API}who?account=shop", 200),
    ):
        text = authorization(scheme, "shop", key, "GET", signed, pairs)
        fields = {"x-ms-date": date, "x-ms-version": VERSION, "Authorization": text}
        assert served.ask(f"{API}who?account=shop", fields=fields).status == status, (
            scheme,
            signed,
        )


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("nothing", 404, "NotFound"),
        ("", 404, "NotFound"),
        ("who/1", 404, "NotFound"),
        ("requests/x", 404, "NotFound"),
        ("overview?x=1", 400, "InvalidQuery"),
        ("who?account=shop&account=shop", 400, "InvalidQuery"),
        ("who?account=" + "a" * 3000, 400, "QueryTooLong"),
    ],
)
def test_mistakes_are_named(served: ServedConsole, target: str, status: int, code: str) -> None:
    answer = served.api(target)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


def test_methods_and_bodies_are_bounded(served: ServedConsole) -> None:
    assert served.signed(f"{API}who", method="POST", body=b"").status == 405
    assert served.signed(f"{API}who", body=b"x").json()["error"]["code"] == "BodyNotExpected"
    assert served.ask(f"{API}session", "PUT", b"").status == 405


def test_the_only_account_is_the_operators_unless_one_is_named() -> None:
    with serving(SHOP) as alone:
        assert alone.api("who").json()["is_operator"] is True
        assert alone.api("overview").json()["server"]["is_ready"] is True
    chosen = with_console(settings(SHOP, BANK), operator="bank")
    with InProcessServer(chosen) as server:
        ports = dict(server._app.ports)
        both = ServedConsole(ports["console"], server, ports)
        assert both.api("who", SHOP).json()["is_operator"] is False
        assert both.api("who", BANK).json()["is_operator"] is True


def test_an_account_that_is_not_served_is_no_operators() -> None:
    context = typing.cast("ServiceContext", None)
    for operator in (None, "nobody"):
        viewers = Viewers(context, lambda: (SHOP,), operator)
        assert not viewers.is_operator_account("nobody")


def test_too_many_requests_are_refused_by_viewer() -> None:
    with serving(SHOP, BANK) as busy:
        answers = [busy.api("who", SHOP) for _ in range(400)]
        assert answers[0].status == 200
        refused = [one for one in answers if one.status == 429]
        assert refused and {one.headers["retry-after"] for one in refused} == {"1"}
        assert busy.api("who", BANK).status == 200


def test_an_operators_hour_has_samples(served: ServedConsole) -> None:
    deadline = time.monotonic() + 60
    while not by_token(served, OPERATING, "history").json()["requests_per_s"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    hour = by_token(served, OPERATING, "history").json()
    assert hour["step_s"] == 5.0
    assert len(hour["requests_per_s"]) == len(hour["connections"]) >= 1
    assert hour["connections"][-1] >= 0


def test_the_documents_of_the_server_have_defaults() -> None:
    assert ServerFigures().accounts == ()
    assert SampledHour(end_time="", step_s=5.0, scope=None).commits_per_s == ()
    assert ServicePort(name="blob", url="", port=1).port == 1


def rows_of(answer: Answer) -> list[tuple[str, str]]:
    assert answer.status == 200, answer.body
    return [(one["account"], one["path"]) for one in answer.json()["requests"]]


def test_the_tail_shows_each_viewer_its_own(served: ServedConsole) -> None:
    blob = served.own("blob")
    blob.signed("/shop/public/a")
    blob.signed("/shop/secret/b")
    blob.signed("/bank/public/c", BANK)
    blob.ask("/nobody/public/d")
    console = rows_of(served.api("requests"))
    assert {path for _, path in console} >= {"/shop/public/a", "/shop/secret/b"}
    assert {account for account, _ in console} == {"shop"}
    assert {account for account, _ in rows_of(served.api("requests", BANK))} == {"bank"}
    assert set(rows_of(by_token(served, READER, "requests"))) == {("shop", "/shop/public/a")}
    seen = {path for _, path in rows_of(by_token(served, OPERATING, "requests"))}
    assert seen >= {"/shop/secret/b", "/bank/public/c", "/nobody/public/d"}
    assert by_token(served, STRANGER, "requests").status == 403
    numbers = [one["number"] for one in by_token(served, OPERATING, "requests").json()["requests"]]
    for number in numbers:
        answers = [
            served.api(f"requests/{number}", SHOP),
            served.api(f"requests/{number}", BANK),
            by_token(served, READER, f"requests/{number}"),
        ]
        for answer, account in zip(answers, ("shop", "bank", "shop"), strict=True):
            if answer.status == 200:
                assert answer.json()["request"]["account"] == account
            else:
                assert answer.status == 404
                assert b"/shop/" not in answer.body
                assert b"/bank/" not in answer.body
