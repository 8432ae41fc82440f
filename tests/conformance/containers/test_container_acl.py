"""Get and Set Container ACL: rules B-CON-07 to B-CON-10."""

from __future__ import annotations

import time

import pytest

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import PUT_BLOB, Client

START, EXPIRY = "2026-01-02T03:04:05.1234567Z", "2036-01-02T03:04:05.0000000Z"


def policy(id_: str, start: str = "", expiry: str = "", permission: str = "") -> str:
    """One SignedIdentifier; what is empty is left out."""
    parts = [("Start", start), ("Expiry", expiry), ("Permission", permission)]
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in parts if text)
    return (
        f"<SignedIdentifier><Id>{id_}</Id><AccessPolicy>{inner}</AccessPolicy></SignedIdentifier>"
    )


def document(*policies: str) -> bytes:
    """A body of Set Container ACL."""
    text = f"<SignedIdentifiers>{''.join(policies)}</SignedIdentifiers>"
    return f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()


def acl(container: str) -> str:
    """The target of both operations."""
    return f"/{container}?restype=container&comp=acl"


def read_policies(answer: Answer) -> list[dict[str, str]]:
    """Return each policy in the answer of Get Container ACL."""
    assert answer.xml.tag == "SignedIdentifiers"
    return [
        {child.tag: child.text or "" for child in one.iter() if not len(child)}
        for one in answer.xml
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_a_private_one(client: Client, container: str, method: str) -> None:
    """B-CON-07."""
    made = client.head(f"/{container}?restype=container")
    read = expect(client.send(method, acl(container)), 200)
    assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert read.get("x-ms-blob-public-access") is None
    if method == "GET":
        assert read["Content-Type"] == "application/xml"
        assert read_policies(read) == []
    else:
        assert read.body == b""


def test_policies_come_back_as_they_were_set(client: Client, container: str) -> None:
    """B-CON-07 B-CON-08: each of the three parts may be absent."""
    before = client.head(f"/{container}?restype=container").etag
    body = document(
        policy("first", START, EXPIRY, "rwd"),
        policy("no permission", START, EXPIRY),
        policy("only expiry", expiry="2036-01-02"),
        policy("&amp;&lt;\u00e9", permission="rl"),
        policy("nothing"),
    )
    headers = {"x-ms-blob-public-access": "container"}
    put = expect(client.put(acl(container), headers, body), 200)
    assert put.etag > before and put.body == b""
    read = expect(client.get(acl(container)), 200)
    assert read.etag == put.etag
    assert read["x-ms-blob-public-access"] == "container"
    found = read_policies(read)
    assert [one["Id"] for one in found] == [
        "first", "no permission", "only expiry", "&<\u00e9", "nothing",
    ]  # fmt: skip
    assert found[0] == {"Id": "first", "Start": START, "Expiry": EXPIRY, "Permission": "rwd"}
    assert "Permission" not in found[1]
    assert found[2]["Expiry"].startswith("2036-01-02") and "Start" not in found[2]
    assert found[3] == {"Id": "&<\u00e9", "Permission": "rl"}
    assert found[2]["Expiry"] == "2036-01-02T00:00:00.0000000Z"
    assert [child.tag for child in read.xml[4]] == ["Id"]


def test_everything_is_replaced(client: Client, container: str) -> None:
    """B-CON-08: policies and access level alike."""
    public = {"x-ms-blob-public-access": "blob"}
    first = expect(client.put(acl(container), public, document(policy("a"), policy("b"))), 200)
    second = expect(client.put(acl(container), (), document(policy("c"))), 200)
    assert second.etag > first.etag
    read = expect(client.get(acl(container)), 200)
    assert texts(read.xml, ".//Id") == ["c"]
    assert read.get("x-ms-blob-public-access") is None
    expect(client.put(acl(container), public), 200)
    read = expect(client.get(acl(container)), 200)
    assert texts(read.xml, ".//Id") == []
    assert read["x-ms-blob-public-access"] == "blob"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (document(*(policy(str(number)) for number in range(6))), "InvalidXmlDocument"),
        (document(policy("a"), policy("a")), "InvalidXmlDocument"),
        (b"no xml", "InvalidXmlDocument"),
        (b"<Other/>", "InvalidXmlDocument"),
        (b"<SignedIdentifiers><SignedIdentifier>", "InvalidXmlDocument"),
        (document(policy("")), "InvalidXmlNodeValue"),
        (document(policy("i" * 65)), "InvalidXmlNodeValue"),
        (document(policy("a", start="yesterday")), "InvalidXmlNodeValue"),
        (document(policy("a", expiry="2026-13-01")), "InvalidXmlNodeValue"),
        (document(policy("a", permission="rz")), "InvalidXmlNodeValue"),
    ],
)
def test_documents_that_are_refused(client: Client, container: str, body: bytes, code: str) -> None:
    """B-CON-09: the document is refused, and nothing changes."""
    put = expect(client.put(acl(container), (), document(policy("kept"))), 200)
    public = {"x-ms-blob-public-access": "container"}
    expect(client.put(acl(container), public, body), 400, code)
    read = expect(client.get(acl(container)), 200)
    assert (texts(read.xml, ".//Id"), read.etag) == (["kept"], put.etag)


def test_five_policies_and_an_id_of_64_characters(client: Client, container: str) -> None:
    """B-CON-09: the bounds themselves are taken."""
    ids = ["i" * 64, "1", "2", "3", "4"]
    expect(client.put(acl(container), (), document(*map(policy, ids))), 200)
    assert texts(client.get(acl(container)).xml, ".//Id") == ids


def test_access_changes_with_the_answer(client: Client, container: str) -> None:
    """B-CON-10: the next request is judged by the new level, each time."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    anonymous = client.anonymous
    for _ in range(20):
        expect(client.put(acl(container), {"x-ms-blob-public-access": "blob"}), 200)
        expect(anonymous.get(f"/{container}/b"), 200)
        expect(client.put(acl(container)), 200)
        expect(anonymous.get(f"/{container}/b"), 401, "NoAuthenticationInformation")
    anonymous.close()


def test_a_waiting_request_is_judged_by_the_new_acl(client: Client, container: str) -> None:
    """B-CON-10 B-WAI-10: the request waits as a public caller, and loses that right before its
    answer."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    expect(client.put(acl(container), {"x-ms-blob-public-access": "blob"}), 200)
    headers = {"If-None-Match": made.etag, "x-strongroom-wait": "20"}
    waiting = client.anonymous.start("GET", f"/{container}/b", headers)
    time.sleep(0.2)
    assert not waiting.done()
    expect(client.put(acl(container)), 200)
    expect(client.put(f"/{container}/b", PUT_BLOB, b"secret"), 201)
    expect(waiting.result(timeout=15), 401, "NoAuthenticationInformation")
