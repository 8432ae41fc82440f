"""Secrets are masked in headers, URLs and texts, under every name and encoding."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.console.requests.heads import SentHead, read_answer, read_request
from strongroom.servers.console.requests.masking import Masking, masked_text, shortened

SECRET = "Q0hBUk1BUktFUg=="
NOTHING = Masking()


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "authorization",
        "Proxy-Authorization",
        "Cookie",
        "SET-COOKIE",
        "x-ms-copy-source-authorization",
        "X-MS-Encryption-Key",
        "x-ms-source-encryption-key",
        "x-ms-encryption-key-sha256",
        "x-ms-%65ncryption-key",
        "c%256Fokie",
    ],
)
def test_a_declared_header_is_hidden(name: str) -> None:
    assert SECRET not in NOTHING.header(name, f"a {SECRET}")
    assert SECRET not in NOTHING.header(name, SECRET)


@pytest.mark.parametrize(
    "name",
    ["x-ms-lease-id", "X-Ms-Proposed-Lease-Id", "x-ms-source-lease-id", "x-ms-popreceipt"],
)
def test_of_a_lease_id_and_a_pop_receipt_four_characters_are_shown(name: str) -> None:
    assert NOTHING.header(name, "11112222-3333") == "1111***"
    assert NOTHING.header(name, "1234567") == "***"


def test_of_an_authorization_its_scheme_and_account_are_shown() -> None:
    assert (
        NOTHING.header("Authorization", f"SharedKey account1:{SECRET}") == "SharedKey account1:***"
    )
    assert NOTHING.header("Authorization", f"SharedKeyLite account1:{SECRET}").endswith(
        "account1:***"
    )
    assert NOTHING.header("Authorization", f"Bearer {SECRET}") == "Bearer ***"
    assert NOTHING.header("Authorization", f"Bearer a:{SECRET}") == "Bearer ***"
    assert NOTHING.header("Authorization", f"Basic a:{SECRET}") == "***"


@pytest.mark.parametrize(
    "name",
    [
        *("sig", "SIG", "s%69g", "%73%69%67", "s%2569g", "%5349g", "sig[]"),
        *("sig%20", "s%69g+", "sig%00", "sig%0d%0A", "sig%2509", "sig "),
    ],
)
@pytest.mark.parametrize(
    "before", ["/a/c/b?", "/a?sv=1&", "http://h/a%3Fsv=1%26", "{'u': '?", "\\u0026"]
)
@pytest.mark.parametrize("equals", ["=", "%3D", "%253d"])
def test_a_signature_is_hidden_however_its_name_is_encoded(
    name: str, before: str, equals: str
) -> None:
    if name == "%5349g":
        name = "%53%49g"
    text = f"{before}{name}{equals}{SECRET}&se=2030"
    assert masked_text(text) == f"{before}{name}{equals}***&se=2030"


def test_a_pop_receipt_in_a_url_is_shortened() -> None:
    assert (
        masked_text("/q/messages/1?popreceipt=AgAAAAMA&x=1")
        == "/q/messages/1?popreceipt=AgAA***&x=1"
    )
    assert masked_text("/q?po%70Receipt=short") == "/q?po%70Receipt=***"


def test_other_parameters_are_left() -> None:
    text = "/a/c?restype=container&comp=list&prefix=signature&signed=1&design=2"
    assert masked_text(text) == text


def head_of(**fields: str) -> SentHead:
    return SentHead(
        "GET",
        "/a/c",
        fields=tuple((name.replace("_", "-"), value) for name, value in fields.items()),
    )


def test_what_a_header_hides_is_hidden_in_every_text() -> None:
    lease = "abcdefgh-1111-2222-3333-444444444444"
    masking = Masking(
        head_of(
            Authorization=f"SharedKey acct:{SECRET}",
            x_ms_lease_id=lease,
            x_ms_encryption_key="KEYKEYKEYKEY",
            Cookie="session=COOKIE-OF-SESSION; other=2",
        )
    )
    text = masking.text(
        f"The MAC signature found in the HTTP request '{SECRET}' is not the same. String to sign:\n"
        f"x-ms-encryption-key:KEYKEYKEYKEY\nx-ms-lease-id:{lease}\nCOOKIE-OF-SESSION"
    )
    assert text == (
        "The MAC signature found in the HTTP request '***' is not the same. String to sign:\n"
        "x-ms-encryption-key:***\nx-ms-lease-id:abcd***\n***"
    )


def test_a_decoded_signature_is_hidden_too() -> None:
    encoded = quote(SECRET, safe="")
    masking = Masking(SentHead("GET", f"/a/c?sv=1&s%69g={encoded}"))
    assert masking.text(f"Signature {SECRET} did not match") == "Signature *** did not match"
    source = Masking(head_of(x_ms_copy_source=f"http://h/a/b?sig={quote(encoded, safe='')}"))
    assert SECRET not in source.text(f"HeaderValue: {SECRET}")


def test_a_secret_that_a_text_cuts_is_hidden() -> None:
    long = "L" + "0123456789abcdef" * 100
    assert "0123456789" not in Masking(head_of(x_ms_lease_id=long)).text(
        f"HeaderValue: {long[:1024]}"
    )
    # The head was cut within the secret, and the text has more of it.
    assert "0123456789" not in Masking(head_of(x_ms_lease_id=long[:100])).text(f"Value: {long}")


secrets = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="&'\"<>;,% +"),
    min_size=12,
    max_size=60,
)


@given(
    secrets,
    st.text(max_size=30),
    st.integers(0, 3),
    st.sampled_from(["sig", "Sig", "s%69g", "s%2569g"]),
)
def test_no_encoding_of_a_url_shows_its_signature(
    secret: str, around: str, times: int, name: str
) -> None:
    url = f"http://host/a/c?{name}={secret}"
    for _ in range(times):
        url = quote(url, safe="")
    head = head_of(Referer=url)
    masking = Masking(head)
    shown = [
        masking.header("Referer", url),
        masking.text(around + url),
        masking.text(f"{around} {secret} {around}"),
    ]
    assert all(secret not in one for one in shown if secret not in around)


@given(
    secrets,
    st.sampled_from(
        ["cookie", "x-ms-copy-source-authorization", "x-ms-encryption-key", "authorization"]
    ),
)
def test_no_text_shows_a_hidden_header(secret: str, name: str) -> None:
    masking = Masking(SentHead("PUT", "/a/c/b", fields=((name, secret),)))
    assert secret not in masking.header(name, secret) + masking.text(
        f"{name}:{secret}\n('{secret}')"
    )


def test_a_long_secret_costs_no_quadratic_time() -> None:
    value = "ab" * 2000
    masking = Masking(head_of(x_ms_lease_id=value, Referer="sig=" * 500))
    assert masking.text(value * 3).count("***") <= 3
    assert shortened("") == "***"


def test_heads_are_read_as_they_were_sent() -> None:
    head = read_request(b"\r\nGET /a/c?x=1 HTTP/1.1\r\nHost: h:1\r\nX-A:  b:c \r\n\r\n")
    assert head == SentHead("GET", "/a/c?x=1", "", (("Host", "h:1"), ("X-A", "b:c")))
    assert read_request(b"GET /a HTTP/1.1\r\nHost: h\r\nX-A: b\0").is_cut
    answer = read_answer(b"HTTP/1.1 404 The blob is not there\r\nETag: 1\r\n\r\n")
    assert answer == SentHead(reason="The blob is not there", fields=(("ETag", "1"),))
