"""The grammar of the filter, and whose requests a viewer may see."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.roles import Assignment
from strongroom.servers.console.requests.filters import WORDS_MAX, FilterProblem, parse_filter
from strongroom.servers.console.requests.kept import ShortRecord
from strongroom.servers.console.requests.scope import RequestScope

RECORD = ShortRecord(
    0, 0.5, 403, "PUT", "Put Blob", "b", "acct", "logs", "/acct/logs/day 1/A403.txt", "key1",
    "AuthorizationFailure", False,
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "403", "4xx", "4XX", "400-499", ">=400", "<404", "status:403", "status:4xx",
        "status:>=400", "status:<=403", "status=403", "logs", "LOGS", "authorizationfail",
        'op:"put blob"', '"Put Blob"', "operation:put", "who:key1", "key1", "path:/acct/logs/",
        "code:AuthorizationFailure", "method:put", "account:acct", "service:blob", "-status:200",
        "-code:BlobNotFound 403 logs", 'path:"day 1"', "-through:console", "A403",
    ],
)  # fmt: skip
def test_a_filter_that_holds(text: str) -> None:
    assert parse_filter(text)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "404", "5xx", "status:5xx", "status:>403", ">403", "<403", "500-599", "nothing", "-403",
        "403 nothing", 'op:"get blob"', "who:key2", "path:/acct/other", "-logs", "service:queue",
        "unknown:403", "through:console", "code:put",
    ],
)  # fmt: skip
def test_a_filter_that_does_not_hold(text: str) -> None:
    assert not parse_filter(text)(RECORD)


def test_an_unknown_field_is_a_part_of_the_word() -> None:
    record = msgspec.structs.replace(RECORD, path="/acct/c/http:x")
    assert parse_filter("http:x")(record)


@pytest.mark.parametrize("text", ["status:abc", "status:40", '"open', "a" * 600, 'op:"x"y'])
def test_what_cannot_be_read_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(FilterProblem, match=r"filter|status|quote"):
        parse_filter(text)


def test_a_filter_has_few_words_since_each_is_looked_for_in_every_record() -> None:
    assert parse_filter("-nothing " * WORDS_MAX)(RECORD)
    with pytest.raises(FilterProblem, match=f"A filter has {WORDS_MAX} words at most"):
        parse_filter("-nothing " * (WORDS_MAX + 1))


@given(st.text(max_size=60))
def test_no_text_makes_another_error(text: str) -> None:
    try:
        parse_filter(text)(RECORD)
    except FilterProblem:
        pass


def record(service: str, account: str, container: str) -> ShortRecord:
    changes = {"service": service, "account": account, "container": container}
    return msgspec.structs.replace(RECORD, **changes)


OWN = record("b", "acct", "logs")
LIST = record("b", "acct", "")
OTHER_CONTAINER = record("b", "acct", "logs2")
QUEUE = record("q", "acct", "logs")
OTHER_ACCOUNT = record("b", "other", "logs")
NOBODY = record("", "", "")
ALL = (OWN, LIST, OTHER_CONTAINER, QUEUE, OTHER_ACCOUNT, NOBODY)


def reader(resource: str = "", role: str = "Storage Blob Data Reader") -> RequestScope:
    return RequestScope(assignments=(Assignment("me", role, "acct", resource),))


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (RequestScope(), ()),
        (RequestScope(account="acct"), (OWN, LIST, OTHER_CONTAINER, QUEUE)),
        (RequestScope(account="other"), (OTHER_ACCOUNT,)),
        (RequestScope(is_operator=True), ALL),
        (reader("logs"), (OWN,)),
        (reader(), (OWN, LIST, OTHER_CONTAINER)),
        (reader("logs", "Storage Blob Delegator"), ()),
        (reader("logs", "Storage Queue Data Reader"), (QUEUE,)),
        (reader("", "Storage Queue Data Message Sender"), ()),
    ],
)
def test_a_viewer_sees_what_is_its_own(scope: RequestScope, seen: tuple[ShortRecord, ...]) -> None:
    assert tuple(one for one in ALL if scope.sees(one)) == seen


def test_only_the_key_of_an_account_owns_it() -> None:
    assert RequestScope(account="acct").owns("acct")
    assert not RequestScope(account="acct").owns("other")
    assert not RequestScope(is_operator=True).owns("acct")
    assert not RequestScope().owns("")
