"""The headers of every answer, and the form of errors: rules B-ERR-*."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

import pytest

from tests.conformance.answer import GUID, Answer, expect, expect_names
from tests.conformance.client import PUT_BLOB, VERSION, Client
from tests.conformance.rows import SERVED, request_of
from tests.operations.transcript import Row

SERVER = re.compile(r"Windows-Azure-Blob/1\.0 .+")


def kinds_of_answers(client: Client, container: str) -> list[Answer]:
    """One of each kind: success, refusals of every layer."""
    made = client.put(f"/{container}/b", PUT_BLOB, b"text")
    return [
        made,
        client.get(f"/{container}/b"),
        client.head(f"/{container}/b"),
        client.get(f"/{container}/b", {"If-None-Match": made.etag}),
        client.get(f"/{container}/b", {"Range": "bytes=9-"}),
        client.get(f"/{container}/absent"),
        client.head(f"/{container}/absent"),
        client.get(f"/{container}/b", auth=None),
        client.get(f"/{container}/%zz"),
        client.send("FETCH", f"/{container}/b"),
        client.get("/nothing?comp=nothing"),
        client.get("/?comp=list"),
        client.delete(f"/{container}/b"),
        client.put("/x?restype=container"),
        client.send("OPTIONS", "/", auth=None),
        client.send("POST", f"/{container}/b?comp=query"),
    ]


def test_what_every_answer_has(client: Client, container: str) -> None:
    """B-ERR-01."""
    answers = kinds_of_answers(client, container)
    assert len({answer.status for answer in answers}) >= 9
    for answer in answers:
        assert GUID.fullmatch(answer["x-ms-request-id"]), answer
        assert SERVER.fullmatch(answer["Server"]), answer
        assert parsedate_to_datetime(answer["Date"]).year > 2000, answer
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", answer["x-ms-version"]), answer
        once = [name.lower() for name, _ in answer.headers]
        assert len(set(once)) == len(once), answer
    assert len({answer["x-ms-request-id"] for answer in answers}) == len(answers)
    assert answers[0]["x-ms-version"] == VERSION


@pytest.mark.parametrize("text", ["a", "x" * 1024, "{0}-[a];b:c/d", "~!@#$%^&*()"])
def test_a_client_request_id_that_is_echoed(client: Client, container: str, text: str) -> None:
    """B-ERR-02: by refusals too."""
    headers = {"x-ms-client-request-id": text}
    target = f"/{container}?restype=container"
    assert expect(client.get(target, headers), 200)["x-ms-client-request-id"] == text
    missing = expect(client.get(f"/{container}/absent", headers), 404, "BlobNotFound")
    assert missing["x-ms-client-request-id"] == text


@pytest.mark.parametrize("text", ["x" * 1025, "a b", "\u00e9", "a\tb"])
def test_a_client_request_id_that_is_not(client: Client, container: str, text: str) -> None:
    """B-ERR-02."""
    token = {"x-ms-client-request-id": text}
    answer = client.get(f"/{container}?restype=container", token, auth=None)
    assert answer.status == 401
    assert answer.get("x-ms-client-request-id") is None


def test_an_error_body(client: Client, container: str) -> None:
    """B-ERR-03."""
    answer = expect(client.get(f"/{container}/absent"), 404, "BlobNotFound")
    assert answer["Content-Type"] == "application/xml"
    assert (
        answer.body.decode().lstrip("\ufeff").startswith('<?xml version="1.0" encoding="utf-8"?>')
    )
    assert [child.tag for child in answer.xml] == ["Code", "Message"]
    text, request_id, time = answer.error["Message"].split("\n")
    assert text == answer.reason == "The specified blob does not exist."
    assert request_id == f"RequestId:{answer['x-ms-request-id']}"
    assert re.fullmatch(r"Time:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", time)
    assert answer["Content-Length"] == str(len(answer.body))


@pytest.mark.parametrize(("version", "told"), [("2017-04-17", False), ("2017-07-29", True)])
def test_the_header_with_the_code(client: Client, container: str, version: str, told: bool) -> None:
    """B-ERR-03."""
    answer = client.get(f"/{container}/absent", {"x-ms-version": version})
    assert (answer.status, answer.error["Code"]) == (404, "BlobNotFound")
    assert answer.code == ("BlobNotFound" if told else None)


def test_answers_that_have_no_body(client: Client, container: str) -> None:
    """B-ERR-04 B-ERR-08."""
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    for answer in (
        expect(client.head(f"/{container}/absent"), 404, "BlobNotFound"),
        expect(client.head(f"/{container}/b", auth=None), 401, "NoAuthenticationInformation"),
        expect(client.head(f"/{container}/%zz"), 400, "InvalidUri"),
        expect(client.get(f"/{container}/b", {"If-None-Match": made.etag}), 304, "ConditionNotMet"),
    ):
        assert answer.body == b""
        assert answer.get("Content-Type") is None


def test_what_each_error_names(client: Client, container: str) -> None:
    """B-ERR-05."""
    target = f"/{container}?restype=container"
    lease = {"x-ms-lease-action": "acquire"}
    bad = client.put(target + "&comp=lease", {**lease, "x-ms-lease-duration": "7"})
    expect_names(bad, 400, "InvalidHeaderValue", "x-ms-lease-duration")
    assert bad.error["HeaderValue"] == "7"
    absent = client.put(target + "&comp=lease", lease)
    expect_names(absent, 400, "MissingRequiredHeader", "x-ms-lease-duration")
    wrong = client.get(target + "&comp=list&include=moon")
    expect_names(wrong, 400, "InvalidQueryParameterValue", "include")
    assert wrong.error["QueryParameterValue"] == "moon" and wrong.error["Reason"]
    order = [child.tag for child in wrong.xml]
    assert order == ["Code", "Message", "QueryParameterName", "QueryParameterValue", "Reason"]
    small = client.get(target + "&comp=list&maxresults=0")
    expect_names(small, 400, "OutOfRangeQueryParameterValue", "maxresults")
    assert small.error["QueryParameterValue"] == "0"
    assert (small.error["MinimumAllowed"], small.error["MaximumAllowed"]) == ("1", "5000")


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;">]>'
)
FETCHING = b'<?xml version="1.0"?><!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd">'
DOCUMENTS = {
    "?restype=service&comp=properties": b"<StorageServiceProperties><DefaultServiceVersion>&c;"
    b"</DefaultServiceVersion></StorageServiceProperties>",
    "{c}?restype=container&comp=acl": b"<SignedIdentifiers><SignedIdentifier><Id>&c;</Id>"
    b"</SignedIdentifier></SignedIdentifiers>",
    "{c}/b?comp=blocklist": b"<BlockList><Latest>&c;</Latest></BlockList>",
}


@pytest.mark.parametrize("target", DOCUMENTS)
@pytest.mark.parametrize("head", [BOMB, FETCHING, b"<!DOCTYPE r>", b""])
def test_xml_with_a_document_type(client: Client, container: str, target: str, head: bytes) -> None:
    """B-ERR-06: the last document refers to an undeclared entity."""
    answer = client.put("/" + target.replace("{c}", container), (), head + DOCUMENTS[target])
    expect(answer, 400, "InvalidXmlDocument")
    assert b"aaaaaaaaaa" not in answer.body


def test_what_is_quoted_is_escaped(client: Client, container: str) -> None:
    """B-ERR-06."""
    text = "<script>&\"'"
    answer = client.get(f"/{container}?restype=container&comp=list&include=%3Cscript%3E%26%22'")
    expect_names(answer, 400, "InvalidQueryParameterValue", "include")
    assert answer.error["QueryParameterValue"] == text
    assert b"<script>" not in answer.body


BAD_HEADERS = (
    ("x-ms-lease-id", "x"),
    ("If-Match", '"'),
    ("If-Modified-Since", "yesterday"),
    ("x-ms-version", "\u00e9"),
    ("x-strongroom-wait", "-1"),
    ("Range", "bytes=9-1,-"),
    ("x-ms-range", "\u00ff=\u00ff"),
    ("Content-Type", "\u00e9/<>"),
    ("Content-MD5", "!!"),
    ("x-ms-meta-\u00e9", "x"),
    ("x-ms-tags", "%zz=&&="),
    ("x-ms-blob-public-access", "\u20ac"),
    ("x-ms-date", "\u00e9"),
)
BAD_QUERIES = (
    "timeout=x",
    "timeout=99999999999999999999999",
    "snapshot=%00",
    "maxresults=%F0%9F%98%80",
    "marker=%FF",
    "prefix=%00",
    "comp=%00",
    "sig=%00&sv=2025-11-05",
    "sv=&sig=",
    "&&==&",
    "blockid=%00",
)


@pytest.mark.parametrize("row", SERVED, ids=lambda row: row.id)
def test_bad_input_is_never_a_500(
    client: Client, account: Client, container: str, row: Row
) -> None:
    """B-ERR-07."""
    user = client if "{" in row.path else account
    sample = request_of(row, container)
    answers = [
        user.send(sample.method, sample.target, {**sample.headers, name: value}, sample.body)
        for name, value in BAD_HEADERS
    ]
    answers += [
        user.send(sample.method, sample.with_query(query), sample.headers, sample.body, auth)
        for query in BAD_QUERIES
        for auth in ("SharedKey", None)
    ]
    for body in (b"\x00\xff", b"<a>" * 5000, b"<?xml version='1.0' encoding='utf-16'?><a/>"):
        answers.append(user.send(sample.method, sample.target, sample.headers, body))
    for answer in answers:
        assert answer.status < 500 or answer.status == 501, answer


@pytest.mark.parametrize(
    "target",
    [
        "/?comp=list",
        "/?restype=service&comp=properties",
        "/{c}?restype=container&comp=list",
        "/{c}?restype=container&comp=acl",
        "/{c}/b?comp=blocklist",
    ],
)
def test_xml_answers(client: Client, container: str, target: str) -> None:
    """B-ERR-08."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    answer = expect(client.get(target.replace("{c}", container)), 200)
    assert answer["Content-Type"] == "application/xml"
    assert 'encoding="utf-8"' in answer.body.decode("utf-8-sig").partition("?>")[0].lower()


def test_the_length_of_answers_without_a_body(client: Client, container: str) -> None:
    """B-ERR-08: 0, and none in a 304."""
    target = f"/{container}?restype=container"
    made = expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    for answer in (
        made,
        expect(client.get(target), 200),
        expect(client.put(target + "&comp=metadata"), 200),
        expect(client.delete(f"/{container}/b", {"If-Match": "*"}), 202),
    ):
        assert answer["Content-Length"] == "0"
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)
    unchanged = client.get(
        f"/{container}/b", {"If-None-Match": client.head(f"/{container}/b").etag}
    )
    assert expect(unchanged, 304, "ConditionNotMet").get("Content-Length") is None
