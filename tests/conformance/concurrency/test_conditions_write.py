"""Conditions on writes, as truth tables: rules B-CWR-01 to B-CWR-10 and B-CWR-14."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import put, snapshot
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.leasing import A, B, Leased
from tests.conformance.moments import OTHER_ETAG, shifted
from tests.conformance.running import Running
from tests.conformance.writes import WRITES, Write, lease, staged_only, state_of

NAMES = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
# One word for each header: not sent, sent so that it holds, or so that it fails.
COMBINATIONS = list(itertools.product((None, True, False), repeat=4))
CREATORS = [write for write in WRITES if write.creates]
OTHERS = [write for write in WRITES if not write.creates]


def headers_of(holds: tuple[bool | None, ...], etag: str, modified: str) -> dict[str, str]:
    """The four headers, each holding or failing for a blob with this ETag and date."""
    earlier = shifted(modified, -1)
    texts = (
        {True: etag, False: OTHER_ETAG},
        {True: OTHER_ETAG, False: etag},
        {True: earlier, False: modified},
        {True: modified, False: earlier},
    )
    return {
        name: text[word]
        for name, text, word in zip(NAMES, texts, holds, strict=True)
        if word is not None
    }


def outcome(holds: tuple[bool | None, ...]) -> str:
    """Return the result of the rules: `passes`, `fails`, or `refused` for an invalid
    combination."""
    match, none_match, since, until = holds
    if (match is not None or until is not None) and (none_match is not None or since is not None):
        return "refused"
    decides = next((word for word in (match, none_match, since, until) if word is not None), True)
    return "passes" if decides else "fails"


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_every_combination(client: Client, container: str, write: Write) -> None:
    """B-CWR-01 B-CWR-02 B-CWR-04 B-CWR-05 B-CWR-06 B-CWR-08 B-CWR-10."""
    target = f"/{container}/b"
    write.prepare(client, container)
    made = write.prepare_blob(client, target)
    before = state_of(client, container)
    for holds in COMBINATIONS:
        headers = headers_of(holds, made.etag, made["Last-Modified"])
        answer = write.send(client, target, headers)
        said = outcome(holds)
        if said == "passes":
            expect(answer, write.status)
            client.delete(target, {"x-ms-lease-id": A, "x-ms-delete-snapshots": "include"})
            client.put(f"{target}?comp=lease", {"x-ms-lease-action": "break"})
            client.delete(target, {"x-ms-delete-snapshots": "include"})
            made = write.prepare_blob(client, target)
            before = state_of(client, container)
            continue
        if said == "fails":
            expect(answer, 412, write.unmet)
        else:
            expect(answer, 400, "MultipleConditionHeadersNotSupported")
        assert state_of(client, container) == before, holds


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_other_forms_of_etags(client: Client, container: str, write: Write) -> None:
    """B-CWR-01 B-CWR-06: an asterisk, no quotes, more than one ETag."""
    target = f"/{container}/b"
    write.prepare(client, container)
    made = write.prepare_blob(client, target)
    for name in ("If-Match", "If-None-Match"):
        two = write.send(client, target, {name: f'{made.etag}, "0x1"'})
        expect(two, 400, "MultipleConditionHeadersNotSupported")
    bare = write.send(client, target, {"If-None-Match": made.etag.strip('"')})
    expect(bare, 412, write.unmet)
    expect(write.send(client, target, {"If-Match": "*"}), write.status)


@pytest.mark.parametrize("write", CREATORS, ids=str)
def test_creation_only(client: Client, container: str, write: Write) -> None:
    """B-CWR-03."""
    target = f"/{container}/b"
    write.prepare(client, container)
    absent = {"If-None-Match": "*"}
    expect(write.send(client, target, absent), write.status)
    before = state_of(client, container)
    expect(write.send(client, target, absent), 409, "BlobAlreadyExists")
    assert state_of(client, container) == before


@pytest.mark.parametrize("write", CREATORS, ids=str)
def test_a_write_that_names_the_lease_replaces_the_blob(
    client: Client, container: str, write: Write
) -> None:
    """B-CWR-03: `If-None-Match: *` beside the id of the blob's lease has no effect."""
    target = f"/{container}/b"
    write.prepare(client, container)
    before = put(client, target).etag
    lease(client, target, {}, "acquire", proposed_lease_id=A, lease_duration="-1")
    asked = {"If-None-Match": "*", "x-ms-lease-id": A}
    expect(write.send(client, target, {"If-None-Match": "*"}), 412, "LeaseIdMissing")
    foreign = {**asked, "x-ms-lease-id": B}
    expect(write.send(client, target, foreign), 412, "LeaseIdMismatchWithBlobOperation")
    expect(write.send(client, target, {**asked, "If-None-Match": before}), 412, write.unmet)
    assert expect(write.send(client, target, asked), write.status).etag != before


@pytest.mark.parametrize("write", CREATORS, ids=str)
def test_a_lease_id_without_a_lease_replaces_nothing(
    client: Client, container: str, write: Write
) -> None:
    """B-CWR-03: the lease is judged first."""
    target = f"/{container}/b"
    write.prepare(client, container)
    put(client, target)
    asked = {"If-None-Match": "*", "x-ms-lease-id": A}
    expect(write.send(client, target, asked), 412, "LeaseNotPresentWithBlobOperation")


@pytest.mark.parametrize("write", OTHERS, ids=str)
def test_an_asterisk_that_has_no_effect(client: Client, container: str, write: Write) -> None:
    """B-CWR-03."""
    target = f"/{container}/b"
    write.prepare_blob(client, target)
    expect(write.send(client, target, {"If-None-Match": "*"}), write.status)


DATE = "Fri, 26 Jun 2015 23:39:12 GMT"
PASSING: list[dict[str, str]] = [
    {},
    {"If-None-Match": OTHER_ETAG},
    {"If-None-Match": "*"},
    {"If-Modified-Since": "Fri, 26 Jun 2099 23:39:12 GMT"},
    {"If-Unmodified-Since": DATE},
    {"If-None-Match": OTHER_ETAG, "If-Modified-Since": DATE},
]


@pytest.mark.parametrize("staged", [False, True], ids=["missing", "uncommitted only"])
@pytest.mark.parametrize("write", CREATORS, ids=str)
def test_a_missing_blob_that_would_be_created(
    client: Client, container: str, write: Write, staged: bool
) -> None:
    """B-CWR-07."""
    target = f"/{container}/b"
    write.prepare(client, container)
    if staged:
        staged_only(client, target)
    for match in (OTHER_ETAG, "*"):
        expect(write.send(client, target, {"If-Match": match}), 412, write.unmet)
        dated = {"If-Match": match, "If-Unmodified-Since": DATE}
        expect(write.send(client, target, dated), 412, write.unmet)
    for headers in PASSING:
        expect(write.send(client, target, headers), write.status)
        expect(client.delete(target), 202)


@pytest.mark.parametrize("write", OTHERS, ids=str)
def test_a_missing_blob(client: Client, container: str, write: Write) -> None:
    """B-CWR-07."""
    for headers in [*PASSING, {"If-Match": OTHER_ETAG}, {"If-Match": "*"}]:
        expect(write.send(client, f"/{container}/b", headers), 404, "BlobNotFound")


@pytest.mark.parametrize("write", [w for w in WRITES if w.is_copy], ids=str)
def test_conditions_on_the_source(client: Client, container: str, write: Write) -> None:
    """B-CWR-08: with the pair rules."""
    source = put(client, f"/{container}/source", b"source", {"x-ms-tags": "k=v"})
    target = f"/{container}/b"
    put(client, target)
    before = state_of(client, container)
    for holds in COMBINATIONS:
        given = headers_of(holds, source.etag, source["Last-Modified"])
        headers = {f"x-ms-source-{name.lower()}": text for name, text in given.items()}
        answer = write.send(client, target, headers)
        said = outcome(holds)
        if said == "passes":
            expect(answer, 202)
            put(client, target)
            before = state_of(client, container)
            continue
        if said == "fails":
            expect(answer, 412, "SourceConditionNotMet")
        else:
            expect(answer, 400, "MultipleConditionHeadersNotSupported")
        assert state_of(client, container) == before, holds


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_conditions_on_tags(client: Client, container: str, write: Write) -> None:
    """B-CWR-08, B-CWR-09."""
    target = f"/{container}/b"
    write.prepare(client, container)
    write.prepare_blob(client, target)
    held = {"x-ms-lease-id": A} if write.needs_lease else {}
    put(client, target, headers={"x-ms-tags": "a=1&b=2", **held})
    before = state_of(client, container)
    refused = write.send(client, target, {"x-ms-if-tags": "\"a\" = '1' AND \"b\" = '1'"})
    expect(refused, 412, "ConditionNotMet")
    unread = write.send(client, target, {"x-ms-if-tags": "a is 1"})
    expect_names(unread, 400, "InvalidHeaderValue", "x-ms-if-tags")
    assert state_of(client, container) == before
    passes = {"x-ms-if-tags": "\"a\" = '1' AND \"b\" > '1'"}
    expect(write.send(client, target, passes), write.status)


def test_tags_of_a_source(client: Client, container: str) -> None:
    """B-CWR-08: Copy Blob alone takes x-ms-source-if-tags."""
    put(client, f"/{container}/source", headers={"x-ms-tags": "a=1"})
    source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
    name = "x-ms-source-if-tags"
    refused = client.put(f"/{container}/b", {**source, name: "\"a\" = '2'"})
    expect(refused, 412, "ConditionNotMet")
    expect(client.put(f"/{container}/b", {**source, name: "\"a\" = '1'"}), 202)


# Each fault and the answer that it gets where it is the first.
UNREADABLE = {"x-ms-lease-id": "no guid"}
FAILING = {"If-Match": OTHER_ETAG}


def test_order_authorisation_first(server: Running, client: Client, container: str) -> None:
    """B-CWR-14."""
    wrong = Client(server.port, Credential(client.account, "d3Jvbmc="))
    answer = wrong.put(f"/{container}/none?comp=metadata", {**UNREADABLE, **FAILING})
    expect(answer, 403, "AuthenticationFailed")
    wrong.close()


def test_order_syntax_before_existence(client: Client, new_name: Callable[[], str]) -> None:
    """B-CWR-14."""
    missing = f"/{new_name()}/none"
    headers = {**UNREADABLE, **FAILING}
    answer = client.put(f"{missing}?comp=metadata", headers)
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-lease-id")
    answer = client.put(f"{missing}?comp=metadata", {**FAILING, "x-ms-lease-id": A})
    expect(answer, 404, "ContainerNotFound")
    answer = client.delete(missing, {"x-ms-delete-snapshots": "some"})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-delete-snapshots")


def test_order_existence_lease_conditions_state(
    server: Running, client: Client, container: str
) -> None:
    """B-CWR-14."""
    target = f"/{container}/b"
    both = {**FAILING, "x-ms-lease-id": A}

    def delete(headers: dict[str, str]) -> Answer:
        return client.delete(target, headers)

    expect(delete(both), 404, "BlobNotFound")
    put(client, target)
    expect(delete(both), 412, "LeaseNotPresentWithBlobOperation")
    snapshot(client, target)
    Leased(server, client, target).acquire()
    expect(delete(FAILING), 412, "LeaseIdMissing")
    expect(delete(both), 412, "ConditionNotMet")
    expect(delete({"x-ms-lease-id": A}), 409, "SnapshotsPresent")
    absent = {**PUT_BLOB, "If-None-Match": "*"}
    expect(client.put(target, absent, b"x"), 412, "LeaseIdMissing")
    other = {**PUT_BLOB, "x-ms-lease-id": A, "If-Match": OTHER_ETAG}
    expect(client.put(target, other, b"x"), 412, "ConditionNotMet")


# Bodies that lie in a blob's record and those that do not come in by different ways.
@pytest.mark.parametrize("size", [100, 9000])
@pytest.mark.parametrize("query", ["", "?comp=block&blockid=QQ==", "?comp=blocklist"])
@pytest.mark.parametrize("name", ["Content-MD5", "x-ms-content-crc64"])
def test_order_a_digest_after_the_conditions(
    server: Running, client: Client, container: str, size: int, query: str, name: str
) -> None:
    """B-CWR-14."""
    digest = b"0" * (16 if name == "Content-MD5" else 8)
    headers = {**PUT_BLOB, name: base64.b64encode(digest).decode()}
    # A list that names nothing is well-formed whatever its length.
    data = b"<BlockList></BlockList>" + b" " * size
    target = f"/{container}/b{query}"
    missing = f"/{container}-none/b{query}"
    expect(client.put(missing, headers, data), 404, "ContainerNotFound")
    put(client, f"/{container}/b")
    code = "Md5Mismatch" if name == "Content-MD5" else "Crc64Mismatch"
    expect(client.put(target, headers, data), 400, code)
    Leased(server, client, f"/{container}/b").acquire()
    expect(client.put(target, headers, data), 412, "LeaseIdMissing")
    held = {**headers, "x-ms-lease-id": A}
    expect(client.put(target, held, data), 400, code)
    if "blockid" not in query:
        expect(client.put(target, {**held, **FAILING}, data), 412, "ConditionNotMet")
