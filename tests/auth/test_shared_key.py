"""Authorization headers: the exact refusal of each defect, both keys, the window of 15 minutes."""

from __future__ import annotations

import pytest

from strongroom.auth.claims import SharedKeyClaim
from strongroom.auth.request import Service, Target
from strongroom.auth.shared_key import WINDOW_TICKS, parse_authorization
from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    INVALID_AUTHENTICATION_INFO,
    INVALID_HEADER_VALUE,
    StorageError,
)
from strongroom.values import TICKS_PER_S, PlusSign
from strongroom.wire.core.http import Request
from tests.auth.signing import (
    BLOB,
    DATE,
    KEY,
    NAME,
    NOW,
    SECOND_KEY,
    claim_of,
    is_owner,
    refused,
    request,
    signature,
)

VERSION = ("x-ms-version", "2021-12-02")
TEXT = (
    f"GET{chr(10) * 12}x-ms-date:{DATE}\nx-ms-version:2021-12-02\n"
    f"/{NAME}/{NAME}/c1/b1\ncomp:metadata"
)


def _get(
    key: str = KEY,
    authorization: str | None = None,
    date: str = DATE,
    more: tuple[tuple[str, str], ...] = (),
) -> Request:
    value = authorization or f"SharedKey {NAME}:{signature(TEXT.replace(DATE, date), key)}"
    fields = [("Authorization", value), ("x-ms-date", date), VERSION, *more]
    return request("GET", f"/{NAME}/c1/b1?comp=metadata", fields)


@pytest.mark.parametrize(("number", "key"), [(1, KEY), (2, SECOND_KEY)])
def test_both_keys_sign_and_the_claim_says_which(number: int, key: str) -> None:
    claim = claim_of(_get(key))
    assert is_owner(claim)
    assert isinstance(claim, SharedKeyClaim)
    assert claim.key == number


def test_another_key_does_not_and_the_detail_shows_the_string() -> None:
    wrong = signature(TEXT, "b3RoZXI=")
    with pytest.raises(StorageError) as caught:
        claim_of(_get("b3RoZXI="))
    assert refused(caught, AUTHENTICATION_FAILED) == (
        f"The MAC signature found in the HTTP request '{wrong}' is not the same as any computed "
        f"signature. Server used following string to sign: '{TEXT}'."
    )


@pytest.mark.parametrize("index", range(44))
def test_every_changed_character_of_the_signature_is_refused(index: int) -> None:
    genuine = signature(TEXT)
    other = "A" if genuine[index] != "A" else "B"
    changed = genuine[:index] + other + genuine[index + 1 :]
    with pytest.raises(StorageError) as caught:
        claim_of(_get(authorization=f"SharedKey {NAME}:{changed}"))
    refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SharedKey",
        "SharedKey ",
        f"SharedKey {NAME}",
        f"SharedKey {NAME}:",
        "SharedKey :abc",
        f"{NAME}:abc",
        f"Sharedkeys {NAME}:abc",
        f"Basic {NAME}:abc",
        f"SharedKey {NAME}:a b",
        f"SharedKey {NAME}:\xe9",
        f"SharedKey\t{NAME}:abc",
    ],
)
def test_a_malformed_header_is_400(text: str) -> None:
    sent = request("GET", "/c1/b1", [("Authorization", text), ("x-ms-date", DATE)])
    with pytest.raises(StorageError) as caught:
        claim_of(sent)
    assert "SharedKey ACCOUNT:SIGNATURE" in refused(caught, INVALID_AUTHENTICATION_INFO)


def test_the_scheme_is_read_in_any_case() -> None:
    assert parse_authorization("sharedkey a:b") == parse_authorization("SharedKey a:b")
    assert parse_authorization("SHAREDKEYLITE a:b") == parse_authorization("SharedKeyLite  a:b")


def test_a_bearer_token_is_refused_clearly() -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(authorization="Bearer eyJ0.eyJ1.c2ln"))
    assert "Bearer tokens are not accepted" in refused(caught, AUTHENTICATION_FAILED)


def test_the_header_must_name_the_account_of_the_url() -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(authorization=f"SharedKey other:{signature(TEXT)}"))
    assert "'other'" in refused(caught, AUTHENTICATION_FAILED)


def test_an_unknown_account() -> None:
    target = Target(Service.BLOB, "nobody", "c1")
    for fields in ([("Authorization", "SharedKey nobody:abc"), ("x-ms-date", DATE)], []):
        with pytest.raises(StorageError) as caught:
            claim_of(request("GET", "/nobody/c1", fields), target)
        assert "no account 'nobody'" in refused(caught, AUTHENTICATION_FAILED)


def test_two_authorization_headers() -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(more=(("authorization", "SharedKey a:b"),)))
    assert "more than once" in refused(caught, INVALID_AUTHENTICATION_INFO)


@pytest.mark.parametrize(
    "name",
    ["x-ms-date", "X-Ms-Version", "x-ms-meta-a", "Content-Type", "If-Match", "Date", "Range"],
)
def test_a_signed_header_sent_twice_is_400(name: str) -> None:
    sent = _get(more=((name, "1"), (name.upper(), "2")))
    with pytest.raises(StorageError) as caught:
        claim_of(sent)
    assert "more than once" in refused(caught, INVALID_HEADER_VALUE)
    assert dict(caught.value.extras)["HeaderName"] == name.lower()


def test_an_unsigned_header_may_come_twice() -> None:
    assert is_owner(claim_of(_get(more=(("Accept", "a"), ("Accept", "b")))))


@pytest.mark.parametrize("offset", [-WINDOW_TICKS, WINDOW_TICKS, 0])
def test_within_15_minutes(offset: int) -> None:
    assert is_owner(claim_of(_get(), now=NOW + offset))


@pytest.mark.parametrize("offset", [-WINDOW_TICKS - 1, WINDOW_TICKS + 1, WINDOW_TICKS * 1000])
def test_beyond_15_minutes_in_both_directions(offset: int) -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(), now=NOW + offset)
    detail = refused(caught, AUTHENTICATION_FAILED)
    assert DATE in detail
    assert "15 minutes" in detail


def test_a_request_that_was_accepted_is_judged_again_later() -> None:
    sent = _get()
    assert is_owner(claim_of(sent))
    with pytest.raises(StorageError) as caught:
        claim_of(sent, now=NOW + 16 * 60 * TICKS_PER_S)
    refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize("date", ["yesterday", "2015-06-26T23:39:12Z", "Fri, 26 Jun 2015"])
def test_a_date_that_cannot_be_read(date: str) -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(date=date))
    assert f"'{date}'" in refused(caught, AUTHENTICATION_FAILED)


def test_no_date_at_all() -> None:
    sent = request("GET", "/c1/b1", [("Authorization", f"SharedKey {NAME}:{signature('x')}")])
    with pytest.raises(StorageError) as caught:
        claim_of(sent)
    assert "neither is present" in refused(caught, AUTHENTICATION_FAILED)


def test_x_ms_date_wins_over_date() -> None:
    old = "Thu, 25 Jun 2015 23:39:12 GMT"
    assert is_owner(claim_of(_get(more=(("Date", old),))))
    # Signed with the Date line filled as well: some clients do.
    text = TEXT.replace("\n" * 6, f"\n\n\n\n\n\n{old}", 1)
    filled = f"SharedKey {NAME}:{signature(text)}"
    sent = _get(authorization=filled, more=(("Date", old),))
    assert is_owner(claim_of(sent))


def test_the_date_alone() -> None:
    text = f"GET\n\n\n\n\n\n{DATE}\n\n\n\n\n\n/{NAME}/c1/b1"
    fields = [("Authorization", f"SharedKey {NAME}:{signature(text)}"), ("Date", DATE)]
    assert is_owner(claim_of(request("GET", "/c1/b1", fields)))


@pytest.mark.parametrize(
    ("service", "scheme", "text"),
    [
        (Service.BLOB, "SharedKeyLite", f"GET\n\n\n\nx-ms-date:{DATE}\n/{NAME}/x?comp=acl"),
        (Service.QUEUE, "SharedKeyLite", f"GET\n\n\n\nx-ms-date:{DATE}\n/{NAME}/x?comp=acl"),
        (Service.FILE, "SharedKeyLite", f"GET\n\n\n\nx-ms-date:{DATE}\n/{NAME}/x?comp=acl"),
        (Service.TABLE, "SharedKeyLite", f"{DATE}\n/{NAME}/x?comp=acl"),
        (Service.TABLE, "SharedKey", f"GET\n\n\n{DATE}\n/{NAME}/x?comp=acl"),
    ],
)
def test_lite_and_tables_are_verified(service: Service, scheme: str, text: str) -> None:
    def sent(signed: str) -> Request:
        fields = [("Authorization", f"{scheme} {NAME}:{signature(signed)}"), ("x-ms-date", DATE)]
        return request("GET", "/x?restype=container&comp=acl", fields)

    target = Target(service, NAME, "x")
    assert is_owner(claim_of(sent(text), target))
    with pytest.raises(StorageError) as caught:
        claim_of(sent(text.replace("acl", "list")), target)
    refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize(
    ("service", "scheme", "query", "plus"),
    [
        (Service.BLOB, "SharedKey", "\nprefix:a+b", PlusSign.ITSELF),
        (Service.BLOB, "SharedKey", "\nprefix:a b", PlusSign.SPACE),
        (Service.QUEUE, "SharedKey", "\nprefix:a b", PlusSign.SPACE),
        (Service.BLOB, "SharedKeyLite", "", PlusSign.UNSIGNED),
        (Service.TABLE, "SharedKey", "", PlusSign.UNSIGNED),
        (Service.TABLE, "SharedKeyLite", "", PlusSign.UNSIGNED),
    ],
)
def test_the_claim_says_what_a_plus_in_the_query_means(
    service: Service, scheme: str, query: str, plus: PlusSign
) -> None:
    """B-SKY-11 B-SKY-12."""
    head = {
        "SharedKey": "GET" + "\n" * 12 + f"x-ms-date:{DATE}",
        "SharedKeyLite": f"GET\n\n\n\nx-ms-date:{DATE}",
    }[scheme]
    if service is Service.TABLE:
        head = DATE if scheme == "SharedKeyLite" else f"GET\n\n\n{DATE}"
    text = f"{head}\n/{NAME}/x{query}"
    fields = [("Authorization", f"{scheme} {NAME}:{signature(text)}"), ("x-ms-date", DATE)]
    sent = request("GET", "/x?prefix=a+b", fields)
    assert claim_of(sent, Target(service, NAME, "x")) == SharedKeyClaim(NAME, plus)


def test_text_that_no_message_can_carry_is_refused() -> None:
    with pytest.raises(StorageError) as caught:
        claim_of(_get(more=(("x-ms-meta-a", "\u20ac"),)), BLOB)
    refused(caught, INVALID_AUTHENTICATION_INFO)
