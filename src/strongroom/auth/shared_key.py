"""Authorization headers of SharedKey and SharedKeyLite, verified by an account's keys and the wall
clock.

Source: "Authorize with Shared Key"; the window of 15 minutes is its section "Specifying the Date
header".
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from strongroom.auth.accounts import Account, signing_key
from strongroom.auth.canonical import (
    DEFAULT_FORM,
    SIGNED_HEADERS,
    Scheme,
    StringsToSign,
    other_forms,
)
from strongroom.auth.claims import SharedKeyClaim
from strongroom.auth.refusals import authentication_failed, invalid_authentication_info
from strongroom.auth.request import HeaderFields, RequestParts, Service
from strongroom.errors.core import invalid_header
from strongroom.times import parse_rfc1123
from strongroom.values import TICKS_PER_S, rfc1123

WINDOW_TICKS: Final = 15 * 60 * TICKS_PER_S

_AUTHORIZATION: Final = re.compile(r"([A-Za-z]+) +([!-~]+)")
_SINGLE_PREFIXES: Final = ("x-ms-", "x-strongroom-")
_SCHEMES: Final = {scheme.value.lower(): scheme for scheme in Scheme}


class Credential(msgspec.Struct, frozen=True):
    """`signature` is its base64 text."""

    scheme: Scheme
    account: str
    signature: str


def parse_authorization(text: str) -> Credential:
    """Parse `SharedKey[Lite] ACCOUNT:SIGNATURE`. A bearer token, which this server cannot verify,
    is refused by 403 and everything else by 400."""
    match = _AUTHORIZATION.fullmatch(text)
    word = match[1].lower() if match else ""
    if word == "bearer":
        raise authentication_failed(
            "Bearer tokens are not accepted by this server. Sign the request with an account key "
            "or use a shared access signature."
        )
    scheme = _SCHEMES.get(word)
    account, _, signature = match[2].partition(":") if match else ("", "", "")
    if scheme is None or not account or not signature:
        raise invalid_authentication_info(
            "The Authorization header must read 'SharedKey ACCOUNT:SIGNATURE' or "
            "'SharedKeyLite ACCOUNT:SIGNATURE'."
        )
    return Credential(scheme, account, signature)


def verify(
    credential: Credential,
    parts: RequestParts,
    service: Service,
    account: Account,
    wall_ticks: int,
) -> SharedKeyClaim:
    """Verify that `account` signed these parts within 15 minutes of `wall_ticks`. Return the claim,
    with the meaning of a `+` in the query as the client signed it."""
    if credential.account != account.name:
        raise authentication_failed(
            f"The Authorization header names the account '{credential.account}', but the request "
            f"addresses the account '{account.name}'."
        )
    refuse_repeated(parts.headers)
    _judge_date(parts.headers, wall_ticks)
    signature = credential.signature.encode("latin-1")
    texts = StringsToSign(credential.scheme, service, parts, account.name)
    try:
        likely = texts.of()
        key = signing_key(account.signers, likely, signature)
        if key:
            return SharedKeyClaim(account.name, texts.plus_sign(DEFAULT_FORM), key)
        for form in other_forms(parts, account.name):
            key = signing_key(account.signers, texts.of(form), signature)
            if key:
                return SharedKeyClaim(account.name, texts.plus_sign(form), key)
    except UnicodeEncodeError:
        raise invalid_authentication_info(
            "The request holds characters that no HTTP message can carry."
        ) from None
    raise authentication_failed(
        f"The MAC signature found in the HTTP request '{credential.signature}' is not the same as "
        "any computed signature. Server used following string to sign: "
        f"'{likely.decode('utf-8', 'replace')}'."
    )


def refuse_repeated(headers: HeaderFields, besides: tuple[str, ...] = ()) -> None:
    """Refuse a single-valued header that was sent more than once, since its meaning is ambiguous.

    Arguments:
        besides: prefixes of header names that are checked elsewhere.
    """
    for name in headers.repeats:
        is_single = name in SIGNED_HEADERS or name.startswith(_SINGLE_PREFIXES)
        if is_single and not name.startswith(besides):
            given = headers.get(name) or ""
            raise invalid_header(name, given, "It has one value, and is given more than once.")


def _judge_date(headers: HeaderFields, wall_ticks: int) -> None:
    text = headers.get("x-ms-date")
    name = "x-ms-date"
    if text is None:
        text, name = headers.get("date"), "Date"
    if not text:
        raise authentication_failed(
            "A signed request must carry its time in the header x-ms-date or Date, and neither is "
            "present."
        )
    sent = parse_rfc1123(text)
    if sent is None:
        raise authentication_failed(
            f"The time '{text}' in the header {name} is not of the form "
            "'Fri, 26 Jun 2015 23:39:12 GMT'."
        )
    if abs(wall_ticks - sent) > WINDOW_TICKS:
        raise authentication_failed(
            f"The time '{text}' in the header {name} is more than 15 minutes away from this "
            f"server's time, '{rfc1123(wall_ticks)}'. Check the client's clock."
        )
