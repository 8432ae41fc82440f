"""A `+` in a query: its meaning follows from what the client signed."""

from __future__ import annotations

import pytest

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.blobs import put
from tests.conformance.client import Client
from tests.conformance.copying import copy, source_url
from tests.conformance.sas import account_sas, service_sas
from tests.conformance.table_client import TableClient, entity, expect_json, insert, table_sas
from tests.conformance.transactions import Change, parts, post, single

NAMES = ("a b/c", "a+b/c")
# "++++" is the base64 of three bytes.
PLUSES = b"<BlockList><Latest>++++</Latest></BlockList>"


@pytest.fixture
def listed(client: Client, container: str) -> str:
    """A container with two blobs, whose names differ in a plus sign and a space."""
    for name in NAMES:
        put(client, f"/{container}/{name.replace('+', '%2B').replace(' ', '%20')}")
    return container


def as_space(client: Client, method: str, target: str, body: bytes = b"") -> Answer:
    """A request that is sent with `+` where a space was signed, as form encoders do."""
    full = client.prefix + target.replace("+", "%20")
    fields = client.fields(method, full, {}, body, "SharedKey")
    return client.send(method, target, fields, body, auth=None)


def blobs(answer: Answer) -> list[str]:
    return texts(expect(answer, 200).xml, ".//Blob/Name")


def test_the_form_that_was_signed_decides(client: Client, listed: str) -> None:
    """B-SKY-11."""
    target = f"/{listed}?restype=container&comp=list&prefix=a+b"
    for _ in range(2):  # also where the parse of the same text is kept
        assert blobs(as_space(client, "GET", target)) == ["a b/c"]
        assert blobs(client.get(target)) == ["a+b/c"]
    answer = as_space(client, "GET", f"{target}&delimiter=+b")
    assert texts(expect(answer, 200).xml, ".//BlobPrefix/Name") == []
    answer = as_space(client, "GET", f"/{listed}?restype=container&comp=list&delimiter=+b")
    assert texts(expect(answer, 200).xml, ".//BlobPrefix/Name") == ["a b"]
    assert blobs(as_space(client, "GET", target.replace("a+b", "a%2Bb"))) == ["a+b/c"]


def test_a_signature_of_neither_form_is_refused(client: Client, listed: str) -> None:
    """B-SKY-11."""
    signed = f"{client.prefix}/{listed}?restype=container&comp=list&prefix=a-b"
    fields = client.fields("GET", signed, {}, b"", "SharedKey")
    target = f"/{listed}?restype=container&comp=list&prefix=a+b"
    expect(client.get(target, fields, auth=None), 403, "AuthenticationFailed")


def test_codes_keep_their_plus(client: Client, container: str) -> None:
    """B-SKY-11: the id is base64, in which no space can be meant."""
    target = f"/{container}/b"
    staged = as_space(client, "PUT", f"{target}?comp=block&blockid=++++", b"block")
    expect(staged, 201)
    expect(client.put(f"{target}?comp=blocklist", {}, PLUSES), 201)
    assert expect(client.get(target), 200).body == b"block"


@pytest.mark.parametrize("kind", ["SharedKeyLite", "service SAS", "account SAS"])
def test_where_nothing_tells_a_prefix_has_spaces(client: Client, listed: str, kind: str) -> None:
    """B-SKY-12."""
    target = f"/{listed}?restype=container&comp=list"
    lite = "SharedKeyLite" if kind == "SharedKeyLite" else None
    token = {
        "service SAS": service_sas(client.credential, listed, sp="l"),
        "account SAS": account_sas(client.credential),
    }.get(kind)
    own = f"&{token}" if token else ""
    assert blobs(client.get(f"{target}&prefix=a+b{own}", auth=lite)) == ["a b/c"]
    assert blobs(client.get(f"{target}&prefix=a%2Bb{own}", auth=lite)) == ["a+b/c"]
    assert blobs(client.get(f"{target}&startFrom=a+b{own}", auth=lite)) == list(NAMES)
    assert blobs(client.get(f"{target}&startFrom=a%2Bb{own}", auth=lite)) == ["a+b/c"]
    answer = client.get(f"{target}&delimiter=+b{own}", auth=lite)
    assert texts(expect(answer, 200).xml, ".//BlobPrefix/Name") == ["a+b"]


def test_a_token_of_a_form_encoder_changes_no_block_id(client: Client, container: str) -> None:
    """B-SKY-12: the token's own values were signed with spaces."""
    token = service_sas(client.credential, container, "b", sp="cw", rscd="a b").replace("%20", "+")
    target = f"/{container}/b"
    staged = client.put(f"{target}?comp=block&blockid=++++&{token}", {}, b"block", auth=None)
    expect(staged, 201)
    expect(client.put(f"{target}?comp=blocklist", {}, PLUSES), 201)


def test_a_copy_source_of_a_form_encoder(client: Client, listed: str) -> None:
    """B-SKY-12."""
    token = service_sas(client.credential, listed, "a b/c", rscd="a b").replace("%20", "+")
    url = source_url(client, f"/{listed}/a%20b/c?{token}")
    expect(copy(client, url, f"/{listed}/copied"), 202)


def test_public_lists(client: Client, listed: str) -> None:
    """B-SKY-12."""
    acl = {"x-ms-blob-public-access": "container"}
    expect(client.put(f"/{listed}?restype=container&comp=acl", acl), 200)
    anonymous = client.anonymous
    target = f"/{listed}?restype=container&comp=list&prefix=a+b"
    assert blobs(anonymous.get(target)) == ["a b/c"]
    anonymous.close()


def test_prefixes_of_queues(queue_account: Client) -> None:
    """B-SKY-11 B-SKY-12: no queue has such a name, and the answer repeats the requested prefix."""
    target = "/?comp=list&prefix=a+b"
    for answer, prefix in (
        (as_space(queue_account, "GET", target), "a b"),
        (queue_account.get(target), "a+b"),
        (queue_account.get(target, auth="SharedKeyLite"), "a b"),
    ):
        assert texts(expect(answer, 200).xml, "Prefix") == [prefix]


@pytest.fixture
def filled(tables: TableClient, table: str) -> str:
    """A table with two entities, whose keys and values differ in a plus sign and a space."""
    for row, text in (("plus", "a+b"), ("space", "a b")):
        insert(tables, table, {"PartitionKey": "p", "RowKey": row, "Text": text, "N": 1})
    return table


def rows(answer: Answer) -> list[str]:
    return [row["RowKey"] for row in expect_json(answer, 200)["value"]]


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_filters_of_form_encoders(tables: TableClient, filled: str, scheme: str) -> None:
    """T-QRY-14."""
    target = f"/{filled}()?%24filter="
    assert rows(tables.get(f"{target}N+eq+1+and+Text+eq+%27a+b%27", auth=scheme)) == ["space"]
    assert rows(tables.get(f"{target}Text%20eq%20%27a%2Bb%27", auth=scheme)) == ["plus"]
    (row,) = expect_json(tables.get(f"/{filled}()?$select=N,+Text&$top=1"), 200)["value"]
    assert row["Text"] == "a+b"
    found = tables.get(f"/Tables?$filter=TableName+eq+%27{filled}%27", auth=scheme)
    assert len(expect_json(found, 200)["value"]) == 1


def test_filters_of_a_sas_and_in_a_batch(tables: TableClient, filled: str) -> None:
    """T-QRY-14."""
    token = table_sas(tables.credential, filled)
    anonymous = tables.anonymous
    asked = f"/{filled}()?$filter=Text+eq+%27a+b%27"
    assert rows(anonymous.get(f"{asked}&{token}")) == ["space"]
    anonymous.close()
    (page,) = parts(post(tables, single(tables, Change("GET", asked))))
    assert [row["RowKey"] for row in page.json["value"]] == ["space"]


def test_a_key_in_the_path_keeps_its_plus(tables: TableClient, table: str) -> None:
    """T-QRY-14: the path is no part of the query."""
    insert(tables, table, {"PartitionKey": "a+b", "RowKey": "r"})
    target = entity(table, "a+b", "r").replace("%2B", "+")
    assert expect_json(tables.get(target), 200)["PartitionKey"] == "a+b"
