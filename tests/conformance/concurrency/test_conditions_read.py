"""Conditions on reads, as truth tables: rules B-CRD-01 to B-CRD-12."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import put, snapshot
from tests.conformance.client import Client
from tests.conformance.moments import OTHER_ETAG, shifted
from tests.conformance.running import Running

READS = {"Get Blob": ("GET", ""), "Get Blob Properties": ("HEAD", "")}
READS |= {"Get Blob Metadata": ("GET", "?comp=metadata")}

# How a header is said -> whether its condition holds; None: not sent.
MATCH = {"etag": True, "bare etag": True, "list with it": True, "*": True}
MATCH |= {"other": False, "list without it": False}
NONE_MATCH = {"etag": False, "bare etag": False, "list with it": False}
NONE_MATCH |= {"other": True, "list without it": True}
SINCE = {"earlier": True, "equal": False, "later": False}
UNTIL = {"earlier": False, "equal": True, "later": True}


@dataclass(frozen=True, slots=True)
class Case:
    """Which of the four headers are sent, and how."""

    match: str | None
    none_match: str | None
    since: str | None
    until: str | None

    def headers(self, etag: str, modified: str) -> dict[str, str]:
        texts = {
            "etag": etag,
            "bare etag": etag.strip('"'),
            "list with it": f'"0x1", {etag},"0x2"',
            "*": "*",
            "other": OTHER_ETAG,
            "list without it": '"0x1", "0x2"',
            "earlier": shifted(modified, -1),
            "equal": modified,
            "later": shifted(modified, 60),
        }
        sent = {
            "If-Match": self.match,
            "If-None-Match": self.none_match,
            "If-Modified-Since": self.since,
            "If-Unmodified-Since": self.until,
        }
        return {name: texts[word] for name, word in sent.items() if word is not None}

    def status(self) -> int:
        """If-Match AND If-Unmodified-Since AND (If-None-Match OR If-Modified-Since)."""
        if self.match is not None and not MATCH[self.match]:
            return 412
        if self.until is not None and not UNTIL[self.until]:
            return 412
        either = []
        if self.none_match is not None:
            either.append(NONE_MATCH[self.none_match])
        if self.since is not None:
            either.append(SINCE[self.since])
        return 200 if any(either) or not either else 304


CASES = [
    Case(*words)
    for words in itertools.product(
        (None, *MATCH), (None, *NONE_MATCH), (None, *SINCE), (None, *UNTIL)
    )
]


@pytest.mark.parametrize("read", READS)
def test_every_combination(client: Client, container: str, read: str) -> None:
    """B-CRD-01 B-CRD-02 B-CRD-03 B-CRD-04 B-CRD-05."""
    method, comp = READS[read]
    target = f"/{container}/b"
    made = put(client, target)
    assert {case.status() for case in CASES} == {200, 304, 412}
    for case in CASES:
        answer = client.send(method, target + comp, case.headers(made.etag, made["Last-Modified"]))
        status = case.status()
        assert answer.status == status, case
        assert answer.code == (None if status == 200 else "ConditionNotMet"), case
        if status != 412:
            seen = (answer.etag, answer["Last-Modified"])
            assert seen == (made.etag, made["Last-Modified"])


@pytest.mark.parametrize(("method", "comp"), READS.values(), ids=list(READS))
def test_none_match_of_anything(client: Client, container: str, method: str, comp: str) -> None:
    """B-CRD-06."""
    put(client, f"/{container}/b")
    asked = {"If-None-Match": "*"}
    for name in ("b", "none"):
        answer = client.send(method, f"/{container}/{name}{comp}", asked)
        expect(answer, 400, "UnsatisfiableCondition")
    before = {**asked, "x-ms-version": "2015-12-11"}
    assert client.send(method, f"/{container}/b{comp}", before).status == 200
    assert client.send(method, f"/{container}/none{comp}", before).status == 404
    both = {**before, "If-Modified-Since": "Fri, 26 Jun 2099 23:39:12 GMT"}
    assert client.send(method, f"/{container}/b{comp}", both).status == 304


def test_what_a_refusal_carries(client: Client, container: str) -> None:
    """B-CRD-07."""
    target = f"/{container}/b"
    made = put(client, target)
    for send in (client.get, client.head):
        unchanged = expect(send(target, {"If-None-Match": made.etag}), 304, "ConditionNotMet")
        assert (unchanged.body, unchanged.etag) == (b"", made.etag)
        assert unchanged["Last-Modified"] == made["Last-Modified"]
    refused = expect(client.head(target, {"If-Match": OTHER_ETAG}), 412, "ConditionNotMet")
    assert refused.body == b""
    refused = expect(client.get(target, {"If-Match": OTHER_ETAG}), 412, "ConditionNotMet")
    assert "condition" in refused.error["Message"]


def test_a_missing_blob(client: Client, container: str) -> None:
    """B-CRD-08."""
    date = "Fri, 26 Jun 2015 23:39:12 GMT"
    for headers in (
        {"If-Match": OTHER_ETAG},
        {"If-Match": "*"},
        {"If-None-Match": OTHER_ETAG},
        {"If-Modified-Since": date},
        {"If-Unmodified-Since": date},
        {"x-ms-if-tags": "\"a\" = '1'"},
    ):
        expect(client.get(f"/{container}/none", headers), 404, "BlobNotFound")
        expect(client.head(f"/{container}/none", headers), 404, "BlobNotFound")


DATE = "Fri, 26 Jun 2015 23:39:12 GMT"


@pytest.mark.parametrize("text", ["x", "2015-06-26", f"{DATE}, {DATE}", "26 Jun", DATE[:-4]])
@pytest.mark.parametrize("name", ["If-Modified-Since", "If-Unmodified-Since"])
def test_a_date_that_cannot_be_read(client: Client, container: str, name: str, text: str) -> None:
    """B-CRD-09."""
    put(client, f"/{container}/b")
    answer = client.get(f"/{container}/b", {name: text})
    expect_names(answer, 400, "InvalidHeaderValue", name)


@pytest.mark.parametrize("text", [",", '"0x1', '"0x1",', '"0x1" "0x2"', '"0x1", *'])
@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_etags_that_cannot_be_read(client: Client, container: str, name: str, text: str) -> None:
    """B-CRD-09."""
    put(client, f"/{container}/b")
    answer = client.get(f"/{container}/b", {name: text})
    expect_names(answer, 400, "InvalidHeaderValue", name)


# For a blob with the tags a=1, b=text.
TAGS = {
    "\"a\" = '1'": True,
    "a = '1'": True,
    "\"a\" = '2'": False,
    "\"a\" <> '2'": True,
    "\"a\" <> '1'": False,
    "\"a\" > '0'": True,
    "\"a\" > '1'": False,
    "\"a\" >= '1'": True,
    "\"a\" < '2'": True,
    "\"a\" <= '0'": False,
    "\"b\" > 'TEXT'": True,
    "\"A\" = '1'": False,
    "\"c\" = '1'": False,
    "\"c\" <> '1'": False,
    "\"a\" = '1' AND \"b\" = 'text'": True,
    "\"a\" = '1' AND \"b\" = 'x'": False,
    "\"a\" = '2' OR \"b\" = 'text'": True,
    "\"a\" = '1' OR \"a\" = '2' AND \"b\" = 'x'": True,
    "(\"a\" = '1' OR \"a\" = '2') AND \"b\" = 'x'": False,
}


@pytest.mark.parametrize("expression", TAGS)
def test_conditions_on_tags(client: Client, container: str, expression: str) -> None:
    """B-CRD-10."""
    target = f"/{container}/b"
    put(client, target, headers={"x-ms-tags": "a=1&b=text"})
    asked = {"x-ms-if-tags": expression}
    for method, query in [*READS.values(), ("GET", "?comp=blocklist")]:
        answer = client.send(method, target + query, asked)
        if TAGS[expression]:
            expect(answer, 200)
        else:
            expect(answer, 412, "ConditionNotMet")


@pytest.mark.parametrize("text", ["", "a", "a = 1", "a = '1", "(a = '1'", "a == '1'", "a = '1' b"])
def test_a_tag_expression_that_cannot_be_read(client: Client, container: str, text: str) -> None:
    """B-CRD-10."""
    put(client, f"/{container}/b", headers={"x-ms-tags": "a=1"})
    answer = client.get(f"/{container}/b", {"x-ms-if-tags": text})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-if-tags")


def test_get_block_list_takes_no_other_condition(client: Client, container: str) -> None:
    """B-CRD-10."""
    made = put(client, f"/{container}/b")
    answer = client.get(f"/{container}/b?comp=blocklist", {"If-Match": made.etag})
    expect(answer, 400, "ConditionHeadersNotSupported")


def test_a_condition_comes_before_the_range(client: Client, container: str) -> None:
    """B-CRD-11."""
    target = f"/{container}/b"
    made = put(client, target)
    past = {"Range": "bytes=100-200"}
    unchanged = client.get(target, {**past, "If-None-Match": made.etag})
    expect(unchanged, 304, "ConditionNotMet")
    expect(client.get(target, {**past, "If-Match": OTHER_ETAG}), 412, "ConditionNotMet")
    expect(client.get(target, {**past, "If-Match": made.etag}), 416, "InvalidRange")


def test_a_snapshot_has_its_own_etag(server: Running, client: Client, container: str) -> None:
    """B-CRD-11."""
    target = f"/{container}/b"
    made = put(client, target)
    at = f"{target}?snapshot={snapshot(client, target)}"
    server.advance(5)
    changed = expect(client.put(f"{target}?comp=metadata"), 200)
    expect(client.get(at, {"If-Match": made.etag}), 200)
    expect(client.get(at, {"If-Match": changed.etag}), 412, "ConditionNotMet")
    expect(client.get(at, {"If-None-Match": made.etag}), 304, "ConditionNotMet")
    dated = {"If-Modified-Since": made["Last-Modified"]}
    expect(client.get(at, dated), 304, "ConditionNotMet")
    expect(client.get(target, dated), 200)


def code_of(answer: Answer) -> str | None:
    """Return the code of an error of an old version, which is in the body only."""
    return answer.error["Code"] if answer.body and answer.status >= 400 else None


@pytest.mark.parametrize("version", ["2009-09-19", "2012-02-12"])
def test_reads_of_old_versions(client: Client, container: str, version: str) -> None:
    """B-CRD-12: the pair rules, as for writes."""
    target = f"/{container}/b"
    made = put(client, target)
    date = made["Last-Modified"]
    for match, none_match, since, until in itertools.product(
        (None, "etag", "other"), (None, "etag", "other"), (None, "earlier", "equal"),
        (None, "earlier", "equal"),
    ):  # fmt: skip
        case = Case(match, none_match, since, until)
        headers = {**case.headers(made.etag, date), "x-ms-version": version}
        answer = client.get(target, headers)
        if (match or until) and (none_match or since):
            assert answer.status == 400, case
            assert code_of(answer) == "MultipleConditionHeadersNotSupported"
        elif match:
            assert answer.status == (200 if match == "etag" else 412), case
        elif none_match:
            assert answer.status == (304 if none_match == "etag" else 200), case
        else:
            assert answer.status == case.status(), case
    two = {"If-Match": f'{made.etag},"0x1"', "x-ms-version": version}
    assert client.get(target, two).status == 400
