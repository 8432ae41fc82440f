"""Get Blob Tags and Set Blob Tags, and tags that come with other requests: rules B-TAG-*."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.answer import expect, expect_names
from tests.conformance.blobs import commit, md5, put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, held, source_url
from tests.conformance.leasing import B, Leased
from tests.conformance.listing import blob, page, properties
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas
from tests.conformance.sources import HOST, Source, Sources
from tests.conformance.tagging import document, find, on_tags, pairs_of, set_tags, tags

OLD, NEW = "Fri, 26 Jun 2015 23:39:12 GMT", "Sat, 26 Jun 2055 23:39:12 GMT"
MANY = {f"key{number}": str(number) for number in range(10)}


@pytest.fixture
def target(client: Client, container: str) -> str:
    """A blob with the tags a=1 and b=2."""
    name = f"/{container}/b"
    put(client, name, headers={"x-ms-tags": "b=2&a=1", "x-ms-meta-m": "kept"})
    return name


def test_tags_are_replaced(server: Running, client: Client, target: str) -> None:
    """B-TAG-01."""
    before = client.head(target)
    server.advance(5)
    answer = expect(set_tags(client, target, {"c": "3", "a b": ""}), 204)
    assert (answer.body, answer.get("ETag"), answer.get("Last-Modified")) == (b"", None, None)
    assert tags(client, target) == {"a b": "", "c": "3"}
    after = client.head(target)
    for name in ("ETag", "Last-Modified", "x-ms-meta-m", "Content-MD5", "x-ms-access-tier"):
        assert after[name] == before[name]
    expect(set_tags(client, target, {}), 204)
    assert tags(client, target) == {}


def test_tags_are_read(client: Client, target: str) -> None:
    """B-TAG-02."""
    answer = expect(client.get(on_tags(target)), 200)
    assert answer["Content-Type"] == "application/xml"
    assert list(pairs_of(answer.xml).items()) == [("a", "1"), ("b", "2")]
    taken = snapshot(client, target)
    set_tags(client, target, {})
    empty = expect(client.get(on_tags(target)), 200).xml
    assert [child.tag for child in empty] == ["TagSet"]
    assert tags(client, f"{target}?snapshot={taken}") == {"a": "1", "b": "2"}


LIMITS = [
    ({**MANY, "one": "more"}, "TagsTooLarge"),
    ({"k" * 129: "v"}, "TagsTooLarge"),
    ({"k": "v" * 257}, "TagsTooLarge"),
    ({"": "v"}, "EmptyTagName"),
]


@pytest.mark.parametrize(("given", "code"), LIMITS)
def test_how_many_and_how_long(
    client: Client, target: str, given: dict[str, str], code: str
) -> None:
    """B-TAG-03."""
    expect(set_tags(client, target, given), 400, code)
    assert tags(client, target) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "given", [MANY, {"k" * 128: "v" * 256}, {"k": ""}, {"aZ09 +-./:=_": "aZ09 +-./:=_"}]
)
def test_the_largest_tags(client: Client, target: str, given: dict[str, str]) -> None:
    """B-TAG-03."""
    expect(set_tags(client, target, given), 204)
    assert tags(client, target) == given


@pytest.mark.parametrize("text", ["a&b", "é", "a;b", "a'b", 'a"b', "a\tb", "a\nb", "@a", "a\\b"])
def test_characters_that_no_tag_has(client: Client, target: str, text: str) -> None:
    """B-TAG-04."""
    for pair in ((text, "v"), ("k", text)):
        expect(set_tags(client, target, [pair]), 400, "InvalidTag")
    assert tags(client, target) == {"a": "1", "b": "2"}


def test_a_key_given_twice(client: Client, target: str) -> None:
    """B-TAG-04."""
    given = [("k", "1"), ("K", "1"), ("k", "2")]
    expect(set_tags(client, target, given), 400, "DuplicateTagNames")
    expect(set_tags(client, target, given[:2]), 204)
    assert tags(client, target) == {"K": "1", "k": "1"}


DOCUMENTS = [
    (b"", "InvalidXmlDocument"),
    (b"<Tags><TagSet>", "InvalidXmlDocument"),
    (b"<TagSet/>", "InvalidXmlDocument"),
    (b"<Tags/>", "MissingRequiredXmlNode"),
    (b"<Tags><TagSet><Tag><Key>k</Key></Tag></TagSet></Tags>", "MissingRequiredXmlNode"),
    (b"<Tags><TagSet><Tag><Value>k</Value></Tag></TagSet></Tags>", "MissingRequiredXmlNode"),
    (b"<Tags><TagSet><Other/></TagSet></Tags>", "UnsupportedXmlNode"),
    (b"<Tags><TagSet/><Other/></Tags>", "UnsupportedXmlNode"),
    (document([("k", "v" * 70_000)]), "RequestBodyTooLarge"),
]


@pytest.mark.parametrize(("body", "code"), DOCUMENTS)
def test_what_is_no_document_of_tags(client: Client, target: str, body: bytes, code: str) -> None:
    """B-TAG-05."""
    status = 413 if code == "RequestBodyTooLarge" else 400
    expect(client.put(on_tags(target), {}, body), status, code)
    assert tags(client, target) == {"a": "1", "b": "2"}


def test_digests_of_the_document(client: Client, target: str) -> None:
    """B-TAG-06."""
    body = document([("c", "3")])
    for headers, code in (
        ({"Content-MD5": md5(b"other")}, "Md5Mismatch"),
        ({"x-ms-content-crc64": "AAAAAAAAAAA="}, "Crc64Mismatch"),
        ({"Content-MD5": "short"}, "InvalidMd5"),
    ):
        expect(client.put(on_tags(target), headers, body), 400, code)
    assert tags(client, target) == {"a": "1", "b": "2"}
    expect(client.put(on_tags(target), {"Content-MD5": md5(body)}, body), 204)


def test_the_tags_of_nothing(client: Client, container: str) -> None:
    """B-TAG-07."""
    target = f"/{container}/absent"
    stage(client, f"/{container}/staged", "1", b"x")
    for name in (target, f"/{container}/staged"):
        expect(client.get(on_tags(name)), 404, "BlobNotFound")
        expect(set_tags(client, name, {"a": "1"}), 404, "BlobNotFound")
    expect(set_tags(client, f"/{container}x/b", {"a": "1"}), 404, "ContainerNotFound")


def test_archived_and_pending_blobs(server: Running, client: Client, target: str) -> None:
    """B-TAG-07."""
    expect(client.put(f"{target}?comp=tier", {"x-ms-access-tier": "Archive"}), 200)
    expect(set_tags(client, target, {"c": "3"}), 204)
    assert tags(client, target) == {"c": "3"}
    source, other = f"{target}-source", f"{target}-pending"
    put(client, source)
    with held(server):
        expect(copy(client, source_url(client, source), other), 202)
        expect(set_tags(client, other, {"c": "3"}), 409, "PendingCopyOperation")


def test_no_snapshot_takes_tags(client: Client, target: str) -> None:
    """B-TAG-08."""
    refused = set_tags(client, f"{target}?snapshot={snapshot(client, target)}", {})
    expect_names(refused, 400, "InvalidQueryParameterValue", "snapshot")


def test_a_lease_and_tags(server: Running, client: Client, target: str) -> None:
    """B-TAG-09."""
    leased = Leased(server, client, target)
    lease_id = leased.acquire()["x-ms-lease-id"]
    expect(set_tags(client, target, {}), 412, "LeaseIdMissing")
    wrong = {"x-ms-lease-id": B}
    expect(set_tags(client, target, {}, wrong), 412, "LeaseIdMismatchWithBlobOperation")
    expect(client.get(on_tags(target), wrong), 412, "LeaseIdMismatchWithBlobOperation")
    assert tags(client, target) == {"a": "1", "b": "2"}
    expect(set_tags(client, target, {}, {"x-ms-lease-id": lease_id}), 204)
    assert client.head(target)["x-ms-lease-state"] == "leased"


def test_conditions_of_reading_tags(client: Client, target: str) -> None:
    """B-TAG-10."""
    etag = client.head(target).etag

    def ask(headers: dict[str, str]) -> tuple[int, str | None]:
        answer = client.get(on_tags(target), headers)
        return answer.status, answer.code

    unmet, same = (412, "ConditionNotMet"), (304, "ConditionNotMet")
    assert ask({"x-ms-blob-if-match": etag, "x-ms-if-tags": "a='1'"}) == (200, None)
    assert ask({"x-ms-blob-if-match": '"0x8D1"'}) == unmet
    assert ask({"x-ms-blob-if-none-match": etag}) == same
    assert ask({"x-ms-blob-if-modified-since": NEW}) == same
    assert ask({"x-ms-blob-if-unmodified-since": OLD}) == unmet
    assert ask({"x-ms-if-tags": "a='2'"}) == unmet
    assert ask({"x-ms-blob-if-match": etag, "x-ms-if-tags": "a='2'"}) == unmet


def test_conditions_of_setting_tags(client: Client, target: str) -> None:
    """B-TAG-10."""
    etag = client.head(target).etag
    for headers in (
        {"x-ms-blob-if-match": '"0x8D1"'},
        {"x-ms-blob-if-none-match": etag},
        {"x-ms-blob-if-modified-since": NEW},
        {"x-ms-blob-if-unmodified-since": OLD},
        {"x-ms-if-tags": "a='2'"},
        {"x-ms-blob-if-match": etag, "x-ms-if-tags": "a='2'"},
        {"x-ms-blob-if-match": '"0x8D1"', "x-ms-if-tags": "a='1'"},
    ):
        expect(set_tags(client, target, {}, headers), 412, "ConditionNotMet")
    both = {"x-ms-blob-if-match": etag, "x-ms-blob-if-none-match": etag}
    expect(set_tags(client, target, {}, both), 400, "MultipleConditionHeadersNotSupported")
    assert tags(client, target) == {"a": "1", "b": "2"}
    met = {"x-ms-blob-if-match": etag, "x-ms-if-tags": "a='1' AND b<>'3'"}
    expect(set_tags(client, target, {}, met), 204)


@pytest.mark.parametrize(
    "name", ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]
)
def test_conditions_under_their_usual_names(client: Client, target: str, name: str) -> None:
    """B-TAG-11."""
    headers = {name: OLD if name.endswith("Since") else '"0x8D1"'}
    code = "ConditionHeadersNotSupported"
    expect(client.get(on_tags(target), headers), 400, code)
    expect(set_tags(client, target, {}, headers), 400, code)


def test_the_number_of_tags(client: Client, container: str, target: str) -> None:
    """B-TAG-12."""
    for answer in (client.head(target), client.get(target)):
        assert answer["x-ms-tag-count"] == "2"
    listed = blob(page(client, container, include="tags"), "b")
    assert (properties(listed)["TagCount"], pairs_of(listed)) == ("2", {"a": "1", "b": "2"})
    plain = blob(page(client, container), "b")
    assert (properties(plain)["TagCount"], plain.find("Tags")) == ("2", None)
    set_tags(client, target, {})
    assert client.head(target).get("x-ms-tag-count") is None
    without = blob(page(client, container, include="tags"), "b")
    assert ("TagCount" in properties(without), without.find("Tags")) == (False, None)


def test_which_writes_replace_tags(client: Client, container: str, target: str) -> None:
    """B-TAG-13."""
    kept = {"a": "1", "b": "2"}
    client.put(f"{target}?comp=metadata", {"x-ms-meta-n": "1"})
    client.put(f"{target}?comp=properties", {"x-ms-blob-content-type": "text/plain"})
    client.put(f"{target}?comp=tier", {"x-ms-access-tier": "Cool"})
    snapshot(client, target)
    stage(client, target, "1", b"x")
    assert tags(client, target) == kept
    commit(client, target, ["1"], {"x-ms-tags": "c=3"})
    assert tags(client, target) == {"c": "3"}
    commit(client, target, ["1"])
    assert tags(client, target) == {}
    put(client, target, headers={"x-ms-tags": "d=4"})
    assert tags(client, target) == {"d": "4"}
    for kind in ({}, SYNC):
        copied = f"/{container}/copied{len(kind)}"
        expect(copy(client, source_url(client, target), copied, kind), 202)
        assert tags(client, copied) == {}
        expect(copy(client, source_url(client, target), copied, {**kind, "x-ms-tags": "e=5"}), 202)
        assert tags(client, copied) == {"e": "5"}
    put(client, target)
    assert tags(client, target) == {}


OPTION = "x-ms-copy-source-tag-option"


def test_tags_of_the_source_are_copied(client: Client, container: str, target: str) -> None:
    """B-TAG-14."""
    url, copied = source_url(client, target), f"/{container}/copied"
    expect(copy(client, url, copied, {**SYNC, OPTION: "COPY"}), 202)
    assert tags(client, copied) == {"a": "1", "b": "2"}
    assert sorted(find_names(client, "a='1'", container)) == ["b", "copied"]
    both = {**SYNC, OPTION: "COPY", "x-ms-tags": "c=3"}
    code = "BothUserTagsAndSourceTagsCopyPresentException"
    expect(copy(client, url, copied, both), 400, code)


def find_names(client: Client, where: str, container: str) -> list[str]:
    answer = expect(find(client, where, container), 200)
    return [element.text or "" for element in answer.xml.findall("Blobs/Blob/Name")]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Client]:
    """A client of another server."""
    running = Running()
    found = running.client()
    yield found
    found.close()
    running.stop()


@pytest.fixture
def away(new_name: Callable[[], str]) -> Iterator[Client]:
    """A client of a server that copies from this machine; its container is `here`."""
    running = Running(copy_source_hosts=(HOST,))
    found = running.client()
    expect(found.put("/here?restype=container"), 201)
    yield found
    found.close()
    running.stop()


def test_tags_of_a_source_elsewhere_are_copied(elsewhere: Client, away: Client) -> None:
    """B-TAG-14, B-TAG-16."""
    expect(elsewhere.put("/there?restype=container"), 201)
    put(elsewhere, "/there/b", headers={"x-ms-tags": "a=1&b=2"})
    for letters, status in (("rt", 202), ("r", 403)):
        token = service_sas(elsewhere.credential, "there", "b", sp=letters)
        url = f"{source_url(elsewhere, '/there/b')}?{token}"
        answer = copy(away, url, f"/here/{letters}", {**SYNC, OPTION: "COPY"})
        expect(answer, status, None if status == 202 else "CannotVerifyCopySource")
    assert tags(away, "/here/rt") == {"a": "1", "b": "2"}
    expect(away.head("/here/r"), 404, "BlobNotFound")


@pytest.mark.parametrize("body", [b"<html/>", b"x" * 70_000, document([("k", "a;b")]), b""])
def test_a_source_elsewhere_without_proper_tags(away: Client, body: bytes) -> None:
    """B-TAG-14."""
    with Sources() as sources:
        sources.add("/file?comp=tags", Source(body))
        url = sources.add("/file", Source(b"x"))
        answer = copy(away, url, "/here/b", {**SYNC, OPTION: "COPY"})
    assert (answer.code, answer.status < 500) == ("CannotVerifyCopySource", True)
    expect(away.head("/here/b"), 404, "BlobNotFound")


def test_words_of_the_tag_option(client: Client, container: str, target: str) -> None:
    """B-TAG-15."""
    url, copied = source_url(client, target), f"/{container}/copied"
    expect(copy(client, url, copied, {**SYNC, OPTION: "replace", "x-ms-tags": "c=3"}), 202)
    assert tags(client, copied) == {"c": "3"}
    for kind, word in ((SYNC, "MERGE"), (SYNC, ""), ({}, "COPY")):
        refused = copy(client, url, copied, {**kind, OPTION: word})
        expect_names(refused, 400, "InvalidHeaderValue", OPTION)
    expect(copy(client, url, copied, {OPTION: "REPLACE"}), 202)


def with_sas(client: Client, target: str, token: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{token}"


def test_which_permission_tags_need(client: Client, container: str, target: str) -> None:
    """B-TAG-16."""
    anyone, code = client.anonymous, "AuthorizationPermissionMismatch"
    for letters, allowed in (("rwlcd", False), ("rwlcdt", True)):
        token = service_sas(client.credential, container, sp=letters)
        wanted = (lambda ok: ok) if allowed else (lambda _: 403)
        why = None if allowed else code
        sent = with_sas(client, on_tags(target), token)
        expect(anyone.get(sent), wanted(200), why)
        expect(anyone.put(sent, {}, document([("a", "1")])), wanted(204), why)
        headers = {**PUT_BLOB, "x-ms-tags": "a=1"}
        new = with_sas(client, f"/{container}/{letters}", token)
        expect(anyone.put(new, headers, b"x"), wanted(201), why)
        listing = with_sas(client, f"/{container}?restype=container&comp=list&include=tags", token)
        expect(anyone.get(listing), wanted(200), why)
        expect(anyone.put(with_sas(client, f"/{container}/plain", token), PUT_BLOB, b"x"), 201)


def test_which_permission_copied_tags_need(client: Client, container: str, target: str) -> None:
    """B-TAG-16."""
    anyone = client.anonymous
    writes = account_sas(client.credential, sp="rwct", srt="o")
    for letters, status, code in (("r", 403, "CannotVerifyCopySource"), ("rt", 202, None)):
        token = service_sas(client.credential, container, "b", sp=letters)
        url = f"{source_url(client, target)}?{token}"
        answer = copy(anyone, url, f"/{container}/copied?{writes}", {**SYNC, OPTION: "COPY"})
        expect(answer, status, code)


def test_if_tags_beside_other_conditions(client: Client, target: str) -> None:
    """B-TAG-17, B-CRD-10, B-CWR-09."""
    etag = client.head(target).etag
    met, unmet = "a = '1' OR a = '7'", "a = '1' AND b = '3'"
    for method, query, header in (
        ("GET", "", {}),
        ("HEAD", "", {}),
        ("GET", "?comp=metadata", {}),
        ("PUT", "?comp=metadata", {"x-ms-meta-a": "1"}),
        ("PUT", "?comp=properties", {}),
        ("PUT", "?comp=snapshot", {}),
        ("PUT", "?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}),
        ("PUT", "", PUT_BLOB),
        ("PUT", "", {"x-ms-copy-source": source_url(client, target)}),
        ("DELETE", "", {}),
    ):
        for match, expression in ((etag, unmet), ('"0x8D1"', met)):
            headers = {**header, "If-Match": match, "x-ms-if-tags": expression}
            answer = client.send(method, target + query, headers)
            assert (answer.status, answer.code) in (
                (412, "ConditionNotMet"),
                (412, "TargetConditionNotMet"),
            ), (method, query)
    both = {"If-Match": etag, "x-ms-if-tags": met}
    expect(client.get(target, {**both, "If-None-Match": etag}), 304, "ConditionNotMet")
    expect(client.delete(target, {**both, "x-ms-delete-snapshots": "include"}), 202)


def test_if_tags_where_a_blob_is_created(client: Client, container: str) -> None:
    """B-TAG-17: a blob that does not exist has no tags."""
    target = f"/{container}/new"
    headers = {**PUT_BLOB, "If-None-Match": "*", "x-ms-if-tags": "a='1'"}
    expect(client.put(target, headers, b"x"), 412, "ConditionNotMet")
    expect(client.head(target), 404, "BlobNotFound")
