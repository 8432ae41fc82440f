"""Service SAS: rules B-SSA-*, and public reads that overrides apply to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import (
    BlobSasPermissions,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.containers.test_container_acl import acl, document, policy
from tests.conformance.rows import ROWS, send_row
from tests.conformance.sas import at, query, service_sas
from tests.conformance.signing import mac
from tests.operations.transcript import Row

AUTH = "AuthenticationFailed"
MISMATCH = "AuthorizationPermissionMismatch"
LETTERS = "racwdxyltfmeopi"
UNDER_CONTAINER = [row for row in ROWS if "{container}" in row.path]
FOR_SAS = [row for row in UNDER_CONTAINER if row.sas != "-"]


@pytest.mark.parametrize("row", FOR_SAS, ids=lambda row: row.id)
def test_the_letters_of_each_row(client: Client, blob: str, row: Row) -> None:
    """B-SSA-01: each of them is enough, all others together are not."""
    enough = LETTERS if row.sas == "any" else row.sas.split("/")
    for letter in enough:
        answer = send_row(client, row, blob, service_sas(client.credential, blob, sp=letter))
        assert answer.code not in (MISMATCH, AUTH, "AuthorizationFailure"), answer
        assert answer.status != 500
    others = "".join(letter for letter in LETTERS if letter not in enough)
    if others:
        answer = send_row(client, row, blob, service_sas(client.credential, blob, sp=others))
        expect(answer, 403, MISMATCH)


@pytest.mark.parametrize(
    "row", [row for row in UNDER_CONTAINER if row.sas == "-"], ids=lambda row: row.id
)
def test_rows_that_no_service_sas_opens(client: Client, blob: str, row: Row) -> None:
    """B-SSA-01: a service SAS does not permit these operations, even with all letters."""
    token = service_sas(client.credential, blob, sp=LETTERS)
    expect(send_row(client, row, blob, token), 403, "AuthorizationFailure")


def test_a_token_for_one_blob(client: Client, blob: str) -> None:
    """B-SSA-02."""
    expect(client.put(f"/{blob}/b2", PUT_BLOB, b"two"), 201)
    token = service_sas(client.credential, blob, "b", sp="rl")
    expect(client.get(f"/{blob}/b?{token}", auth=None), 200)
    expect(client.get(f"/{blob}/b2?{token}", auth=None), 403, AUTH)
    expect(client.get(f"/{blob}/b/c?{token}", auth=None), 403, AUTH)
    listed = client.get(f"/{blob}?restype=container&comp=list&{token}", auth=None)
    expect(listed, 403, AUTH)


def test_a_token_for_a_container(client: Client, blob: str) -> None:
    """B-SSA-02."""
    expect(client.put(f"/{blob}/dir/b2", PUT_BLOB, b"two"), 201)
    other = blob + "-other"
    expect(client.put(f"/{other}?restype=container"), 201)
    expect(client.put(f"/{other}/b", PUT_BLOB, b"other"), 201)
    token = service_sas(client.credential, blob, sp="rl")
    expect(client.get(f"/{blob}/b?{token}", auth=None), 200)
    expect(client.get(f"/{blob}/dir/b2?{token}", auth=None), 200)
    expect(client.get(f"/{blob}?restype=container&comp=list&{token}", auth=None), 200)
    expect(client.get(f"/{other}/b?{token}", auth=None), 403, AUTH)
    expect(client.get(f"/{other}?restype=container&comp=list&{token}", auth=None), 403, AUTH)


def test_a_blob_name_is_signed_decoded(client: Client, container: str) -> None:
    """B-SSA-02."""
    expect(client.put(f"/{container}/a%20%C3%A9%2Fb", PUT_BLOB, b"x"), 201)
    token = service_sas(client.credential, container, "a \u00e9/b")
    expect(client.get(f"/{container}/a%20%C3%A9/b?{token}", auth=None), 200)


def test_a_token_for_a_snapshot(client: Client, blob: str) -> None:
    """B-SSA-03."""
    times = [expect(client.put(f"/{blob}/b?comp=snapshot"), 201)["x-ms-snapshot"] for _ in range(2)]
    token = service_sas(client.credential, blob, "b", snapshot=times[0])
    target = f"/{blob}/b?{token}"
    expect(client.get(f"{target}&snapshot={times[0]}", auth=None), 200)
    expect(client.get(f"{target}&snapshot={times[1]}", auth=None), 403, AUTH)
    expect(client.get(target, auth=None), 403, AUTH)
    base = service_sas(client.credential, blob, "b")
    expect(client.get(f"/{blob}/b?{base}", auth=None), 200)
    expect(client.get(f"/{blob}/b?{base}&snapshot={times[0]}", auth=None), 403, AUTH)
    everything = service_sas(client.credential, blob)
    expect(client.get(f"/{blob}/b?{everything}&snapshot={times[0]}", auth=None), 200)


@pytest.mark.parametrize("sr", ["", "x", "B", "f", "s"])
def test_a_resource_that_is_none(client: Client, blob: str, sr: str) -> None:
    """B-SSA-03."""
    token = service_sas(client.credential, blob, "b", sr=sr)
    expect(client.get(f"/{blob}/b?{token}", auth=None), 403, AUTH)


@pytest.mark.parametrize(
    "sv",
    [
        "2012-02-12",
        "2013-08-15",
        "2014-02-14",
        "2015-02-21",
        "2015-04-05",
        "2018-03-28",
        "2018-11-09",
        "2020-10-02",
        "2020-12-06",
        "2026-02-06",
    ],
)
def test_the_string_to_sign_of_each_range(client: Client, blob: str, sv: str) -> None:
    """B-SSA-04."""
    fields = {"st": at(-60)} | ({"rscc": "no-cache"} if sv >= "2013-08-15" else {})
    if sv >= "2015-04-05":
        fields |= {"sip": "127.0.0.1", "spr": "https,http"}
    for name in ("b", None):
        token = service_sas(
            client.credential,
            blob,
            name,
            sv=sv,
            **fields,  # type: ignore[arg-type]  # keywords of a table
        )
        expect(client.get(f"/{blob}/b?{token}", auth=None), 200)


def test_tokens_of_the_official_sdk(client: Client, blob: str) -> None:
    """B-SSA-04."""
    now = datetime.now(UTC)
    start, expiry = now - timedelta(minutes=1), now + timedelta(hours=1)
    token = generate_blob_sas(
        client.account,
        blob,
        "b",
        account_key=client.credential.key,
        permission=BlobSasPermissions(read=True, write=True, create=True),
        ip="127.0.0.1",
        protocol="https,http",
        content_type="text/html",
        start=start,
        expiry=expiry,
    )
    answer = expect(client.get(f"/{blob}/b?{token}", auth=None), 200)
    assert answer["Content-Type"] == "text/html"
    token = generate_container_sas(
        client.account,
        blob,
        account_key=client.credential.key,
        permission=ContainerSasPermissions(read=True, list=True),
        start=start,
        expiry=expiry,
    )
    expect(client.get(f"/{blob}?restype=container&comp=list&{token}", auth=None), 200)
    expect(client.get(f"/{blob}/b?{token}", auth=None), 200)


def test_a_stored_policy_completes_a_token(client: Client, blob: str) -> None:
    """B-SSA-05."""
    policies = document(
        policy("whole", at(-60), at(60), "r"),
        policy("no letters", at(-60), at(60)),
        policy("expired", at(-60), at(-30), "r"),
        policy("later", at(60), at(90), "r"),
    )
    expect(client.put(acl(blob), (), policies), 200)

    def get(si: str, **fields: str) -> Answer:
        found: dict[str, str] = {"sp": "", "se": "", **fields}
        # Keywords of a table.
        token = service_sas(client.credential, blob, si=si, **found)  # type: ignore[arg-type]
        return client.get(f"/{blob}/b?{token}", auth=None)

    expect(get("whole"), 200)
    expect(get("no letters", sp="r"), 200)
    expect(get("no letters", sp="w"), 403, MISMATCH)
    expect(get("no letters"), 403, AUTH)
    expect(get("expired"), 403, AUTH)
    expect(get("later"), 403, AUTH)
    missing = expect(get("absent", sp="r", se=at(60)), 403, AUTH)
    text = "SAS identifier cannot be found for specified signed identifier"
    assert text in missing.error["AuthenticationErrorDetail"]


@pytest.mark.parametrize("name", ["sp", "se", "st"])
def test_a_field_in_token_and_policy(client: Client, blob: str, name: str) -> None:
    """B-SSA-06."""
    expect(client.put(acl(blob), (), document(policy("whole", at(-90), at(90), "r"))), 200)
    text = {"sp": "r", "se": at(60), "st": at(-60)}[name]
    fields: dict[str, str] = {"sp": "", "se": "", name: text}
    # Keywords of a table.
    token = service_sas(client.credential, blob, si="whole", **fields)  # type: ignore[arg-type]
    answer = client.get(f"/{blob}/b?{token}", auth=None)
    expect_names(answer, 400, "InvalidQueryParameterValue", name)


def test_a_policy_counts_from_the_answer_on(client: Client, blob: str) -> None:
    """B-SSA-07 B-CON-10: for tokens that are already given out."""
    token = service_sas(client.credential, blob, si="p", sp="", se="")
    target = f"/{blob}/b?{token}"
    for _ in range(10):
        expect(client.put(acl(blob), (), document(policy("p", expiry=at(90), permission="r"))), 200)
        expect(client.get(target, auth=None), 200)
        expect(client.put(acl(blob), (), document(policy("p", expiry=at(90), permission="w"))), 200)
        expect(client.get(target, auth=None), 403, MISMATCH)
        expect(client.put(acl(blob)), 200)
        expect(client.get(target, auth=None), 403, AUTH)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_overrides_of_response_headers(client: Client, blob: str, method: str) -> None:
    """B-SSA-08."""
    fields = {
        "rscc": "max-age=5",
        "rscd": "attachment; filename=a b.txt",
        "rsce": "gzip",
        "rscl": "de",
        "rsct": "text/plain; charset=utf-8",
    }
    # Keywords of a table.
    token = service_sas(client.credential, blob, **fields)  # type: ignore[arg-type]
    answer = expect(client.send(method, f"/{blob}/b?{token}", auth=None), 200)
    names = (
        "Cache-Control",
        "Content-Disposition",
        "Content-Encoding",
        "Content-Language",
        "Content-Type",
    )
    assert [answer[name] for name in names] == list(fields.values())
    plain = expect(client.send(method, f"/{blob}/b"), 200)
    assert plain["Content-Type"] == "application/octet-stream"
    # These parameters cannot be added to a token.
    bare = service_sas(client.credential, blob)
    expect(client.get(f"/{blob}/b?{bare}&rsct=text%2Fhtml", auth=None), 403, AUTH)


UDK = {
    "skoid": "00000000-1111-2222-3333-444444444444",
    "sktid": "55555555-6666-7777-8888-999999999999",
    "skt": "2026-01-01T00:00:00Z",
    "ske": "2099-01-01T00:00:00Z",
    "sks": "b",
    "skv": "2021-12-02",
}


@pytest.mark.parametrize(
    ("sv", "users", "session"),
    [
        ("2018-11-09", 0, False),
        ("2020-02-10", 3, False),
        ("2020-12-06", 3, True),
        ("2025-07-05", 5, True),
    ],
)
def test_a_user_delegation_token(
    client: Client, blob: str, sv: str, users: int, session: bool
) -> None:
    """B-SSA-09: signed with a key that this server never issued."""
    fields = {"sv": sv, "sr": "c", "sp": "r", "se": at(3600), **UDK}
    lines = ["r", "", fields["se"], f"/blob/{client.account}/{blob}", *UDK.values()]
    lines += [""] * users + ["", "", sv, "c", ""] + [""] * session + [""] * 5
    text = "\n".join(lines)
    token = query({**fields, "sig": mac("bm90IGEga2V5IG9mIGhlcmU=", text)})
    answer = client.get(f"/{blob}/b?{token}", auth=None)
    detail = expect(answer, 403, AUTH).error["AuthenticationErrorDetail"]
    assert "user delegation key" in detail and "not known" in detail
