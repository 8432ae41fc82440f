"""Account SAS: rules B-ASA-*."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, Services, generate_account_sas

from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.rows import ROWS, send_row
from tests.conformance.sas import account_sas, at
from tests.operations.transcript import Row

AUTH = "AuthenticationFailed"
LETTERS = "rwdxylacuptfi"
DENIALS = (
    AUTH,
    "AuthorizationFailure",
    "AuthorizationServiceMismatch",
    "AuthorizationResourceTypeMismatch",
    "AuthorizationPermissionMismatch",
)


def needs(row: Row) -> tuple[list[str], list[str]]:
    """The resource types and the letters of the column `account sas`."""
    types, letters = row.account_sas.split(":")
    return types.split("/"), list(LETTERS) if letters == "any" else letters.split("/")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.account_sas != "-"], ids=lambda row: row.id
)
def test_types_and_letters_of_each_row(
    client: Client, account: Client, blob: str, row: Row
) -> None:
    """B-ASA-01 B-ASA-02: each is enough; without the type, or without the letter, it is not."""
    user, container = (client, blob) if "{" in row.path else (account, "")
    types, letters = needs(row)
    for kind in types:
        for letter in letters:
            token = account_sas(user.credential, srt=kind, sp=letter)
            answer = send_row(user, row, container, token)
            assert answer.code not in DENIALS and answer.status != 500, (kind, letter, answer)
    other_types = "".join(kind for kind in "sco" if kind not in types)
    if other_types:
        token = account_sas(user.credential, srt=other_types, sp=LETTERS)
        refused = send_row(user, row, container, token)
        assert (refused.status, refused.code) == (403, "AuthorizationResourceTypeMismatch")
    other_letters = "".join(letter for letter in LETTERS if letter not in letters)
    if other_letters:
        token = account_sas(user.credential, sp=other_letters)
        refused = send_row(user, row, container, token)
        assert (refused.status, refused.code) == (403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize("sv", ["2015-04-05", "2018-11-09", "2020-10-02", "2020-12-06"])
def test_the_string_to_sign(client: Client, blob: str, sv: str) -> None:
    """B-ASA-01: from 2020-12-06 on it has one line more."""
    token = account_sas(
        client.credential, sv=sv, sp="r", st=at(-60), sip="127.0.0.1", spr="https,http"
    )
    expect(client.get(f"/{blob}/b?{token}", auth=None), 200)


def test_a_token_of_the_official_sdk(client: Client, blob: str) -> None:
    """B-ASA-01."""
    token = generate_account_sas(
        client.account,
        client.credential.key,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, list=True, write=True, delete=True),
        datetime.now(UTC) + timedelta(hours=1),
        services=Services(blob=True, queue=True),
    )
    expect(client.get(f"/{blob}/b?{token}", auth=None), 200)
    expect(client.get(f"/?comp=list&{token}", auth=None), 200)
    expect(client.put(f"/{blob}/b2?{token}", PUT_BLOB, b"x", auth=None), 201)


@pytest.mark.parametrize(
    ("ss", "srt", "sp", "code"),
    [
        ("qtf", "c", "w", "AuthorizationServiceMismatch"),
        ("b", "sc", "w", "AuthorizationResourceTypeMismatch"),
        ("b", "o", "w", "AuthorizationPermissionMismatch"),
    ],
)
def test_what_is_judged_first(
    client: Client, blob: str, ss: str, srt: str, sp: str, code: str
) -> None:
    """B-ASA-02: service, resource type, permission."""
    token = account_sas(client.credential, ss=ss, srt=srt, sp=sp)
    expect(client.get(f"/{blob}/b?{token}", auth=None), 403, code)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_acls_are_for_keys_only(client: Client, container: str, method: str) -> None:
    """B-ASA-03."""
    token = account_sas(client.credential, sp=LETTERS)
    answer = client.send(method, f"/{container}?restype=container&comp=acl&{token}", auth=None)
    expect(answer, 403, "AuthorizationFailure")


def test_fields_that_must_or_must_not_be_there(client: Client, blob: str) -> None:
    """B-ASA-04."""
    tokens = [
        account_sas(client.credential, si="policy"),
        account_sas(client.credential, ss=""),
        account_sas(client.credential, srt=""),
        account_sas(client.credential, sp=""),
        account_sas(client.credential, se=""),
    ]
    for token in tokens:
        expect(client.get(f"/{blob}/b?{token}", auth=None), 403, AUTH)
    without = re.sub("&?sig=[^&]*", "", account_sas(client.credential))
    expect(client.get(f"/{blob}/b?{without}", auth=None), 403, AUTH)
