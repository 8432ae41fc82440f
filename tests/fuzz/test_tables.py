"""Invalid requests to tables: filters, tokens, batches, documents, addresses.

Any request gets a valid answer, as JSON that agrees with its header. The same holds for the parts
of a batch's answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import core as errors
from strongroom.testing.server import InProcessServer
from tests.conformance.answer import Answer
from tests.conformance.sas import account_sas
from tests.conformance.transactions import parts
from tests.effort import examples
from tests.fuzz.channel import Channel, FuzzRequest, ReceivedAnswer, encode
from tests.fuzz.conftest import CREDENTIAL
from tests.fuzz.requests import HOSTILE, hostile
from tests.fuzz.test_documents import edited, edits

TABLE = "Fuzzed"
ACCOUNT = CREDENTIAL.account
JSON_TYPE = ("Content-Type", "application/json")
BATCH_TYPE = ("Content-Type", "multipart/mixed; boundary=batch_a")
_CODES = {(row.status, row.code) for row in errors.table()}
_SPEAK_XML = ("comp=", "restype=")
Pairs = tuple[tuple[str, str], ...]


class Tables(Channel):
    """A connection to the tables, with a token in place of signatures."""

    def ask(self, sent: FuzzRequest) -> ReceivedAnswer:
        """Send a request; return its answer, which has been checked."""
        mark = "&" if "?" in sent.target else "?"
        token = account_sas(self.credential, ss="t", srt="sco", sp="rwdlacu")
        whole = FuzzRequest(
            sent.method, f"{sent.target}{mark}{token}", sent.headers, sent.body, None
        )
        try:
            got = self._answer(encode(whole, self.credential, self.port), whole)
        except BaseException:
            self.close()
            raise
        check(sent, got)
        return got


def check(sent: FuzzRequest, got: ReceivedAnswer) -> None:
    """Check the rules for every answer."""
    shown = f"{sent}\n{got}"
    assert got.status < 500 or got.status == 501, shown
    code = got.get("x-ms-error-code")
    if got.status < 400:
        assert code is None, shown
        if got.status == 202 and got.body:
            answer = Answer(sent.method, got.status, "", got.headers, got.body)
            for part in parts(answer):
                assert part.status < 500 or part.status == 501, shown
                assert part.status < 400 or (part.status, part.code) in _CODES, shown
        elif got.body and "json" in (got.get("Content-Type") or ""):
            json.loads(got.body)
        return
    # The header does not name the error before version 2017-07-29.
    assert code is None or (got.status, code) in _CODES, shown
    if sent.method != "HEAD" and not any(word in sent.target.lower() for word in _SPEAK_XML):
        told = json.loads(got.body)["odata.error"]
        assert (got.status, told["code"]) in _CODES and told["message"]["value"], shown
        assert code in (None, told["code"]), shown


@pytest.fixture
def tables(server: InProcessServer) -> Iterator[Tables]:
    """A table with a few entities to go wrong about."""
    made = Tables(int(server.table_url.rpartition(":")[2]), CREDENTIAL)
    made.ask(FuzzRequest("POST", f"/{ACCOUNT}/Tables", (JSON_TYPE,), b'{"TableName":"Fuzzed"}'))
    for number in range(3):
        row = {"PartitionKey": "p", "RowKey": str(number), "N": number, "S": "s", "F": True}
        made.ask(FuzzRequest("POST", f"/{ACCOUNT}/{TABLE}", (JSON_TYPE,), json.dumps(row).encode()))
    yield made
    assert made.ask(FuzzRequest("GET", f"/{ACCOUNT}/Tables")).status == 200
    made.close()


def sendable(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


FILTER_WORDS = (
    *("N", "S", "F", "PartitionKey", "RowKey", "Timestamp", "eq", "ne", "gt", "le", "and", "or"),
    *("not", "(", ")", "1", "-1", "1.5", "9L", "'s'", "'it''s'", "true", "X'0A'", "guid'x'"),
    *("datetime'2020-01-01T00:00:00Z'", "binary'zz'", "startswith(", ",", "'", "null", "\0", "é"),
)
filters = st.one_of(
    st.lists(st.sampled_from(FILTER_WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(FILTER_WORDS[:26]), min_size=3, max_size=11).map(" ".join),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=30),
    st.sampled_from(HOSTILE),
)
tokens = st.one_of(
    st.from_regex(r"1!\d{1,2}![A-Za-z0-9*_-]{0,20}", fullmatch=True), st.sampled_from(HOSTILE)
)


@examples(600)
@given(text=filters)
def test_filters(tables: Tables, text: str) -> None:
    for path in (f"{TABLE}()", "Tables"):
        tables.ask(FuzzRequest("GET", f"/{ACCOUNT}/{path}?$filter={quote(text, safe='')}"))


@examples(300)
@given(partition=st.one_of(st.none(), tokens), row=st.one_of(st.none(), tokens), text=filters)
def test_tokens(tables: Tables, partition: str | None, row: str | None, text: str) -> None:
    given_pairs = {"NextPartitionKey": partition, "NextRowKey": row, "NextTableName": row}
    pairs = [f"{n}={quote(v, safe='')}" for n, v in given_pairs.items() if v is not None]
    for path in (f"{TABLE}()", "Tables"):
        tables.ask(FuzzRequest("GET", f"/{ACCOUNT}/{path}?$top=2&" + "&".join(pairs)))


OPTIONS = ("$filter", "$top", "$select", "$format", "$orderby", "NextRowKey", "api-version", "comp",
           "restype", "timeout", "tn", "$Filter", "$")  # fmt: skip
HEADERS = ("Accept", "Content-Type", "DataServiceVersion", "MaxDataServiceVersion", "If-Match",
           "Prefer", "X-HTTP-Method", "x-ms-version", "Content-ID", "Origin")  # fmt: skip
SHAPES = ("{}", "{}()", "Tables", "Tables('{}')", "{}(PartitionKey='p',RowKey='{}')", "$batch", "")
METHODS = ("GET", "PUT", "POST", "MERGE", "PATCH", "DELETE", "HEAD", "OPTIONS")
ENTITY = (
    b'{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64","A":"12","B":1.5,"C":true,'
    b'"D":"d","E@odata.type":"Edm.DateTime","E":"2020-01-01T00:00:00Z","F":null,'
    b'"G@odata.type":"Edm.Guid","G":"8f9a3f0e-0000-4000-8000-00000000abcd",'
    b'"H@odata.type":"Edm.Binary","H":"AAAA","odata.etag":"x","Timestamp":"2020-01-01T00:00:00Z"}'
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A request to some address, with an option and headers that may be anything."""

    method: str
    shape: str
    name: str
    options: Pairs
    headers: Pairs
    body: bytes

    def sent(self) -> FuzzRequest:
        path = self.shape.replace("{}", quote(self.name, safe="'"))
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in self.options)
        headers = tuple((name, sendable(value)) for name, value in self.headers)
        return FuzzRequest(self.method, f"/{ACCOUNT}/{path}?{query}", headers, self.body)


recipes = st.builds(
    Recipe,
    st.sampled_from(METHODS),
    st.sampled_from(SHAPES),
    st.one_of(st.sampled_from((TABLE, "1", "p", "x'y")), hostile),
    st.lists(st.tuples(st.sampled_from(OPTIONS), hostile), max_size=2).map(tuple),
    st.lists(st.tuples(st.sampled_from(HEADERS), hostile), max_size=2).map(
        lambda pairs: (JSON_TYPE, *pairs)
    ),
    st.one_of(st.just(b""), edits.map(lambda changes: edited(ENTITY, changes))),
)


@examples(1200)
@given(recipe=recipes)
def test_requests(tables: Tables, recipe: Recipe) -> None:
    tables.ask(recipe.sent())


def test_every_prefix_of_an_entity_is_refused_or_taken(tables: Tables) -> None:
    for end in range(len(ENTITY)):
        tables.ask(FuzzRequest("POST", f"/{ACCOUNT}/{TABLE}", (JSON_TYPE,), ENTITY[:end]))


PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 1\r\n"
BATCH = (
    "--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n"
    f"--changeset_b\r\n{PART}\r\nPUT /{ACCOUNT}/{TABLE}(PartitionKey='p',RowKey='7') HTTP/1.1\r\n"
    'Content-Type: application/json\r\n\r\n{"N":7}\r\n'
    f"--changeset_b\r\n{PART}\r\nPOST /{ACCOUNT}/{TABLE} HTTP/1.1\r\nPrefer: return-content\r\n"
    f"Content-Type: application/json\r\n\r\n{ENTITY.decode()}\r\n"
    f"--changeset_b\r\n{PART}\r\nDELETE {TABLE}(PartitionKey='p',RowKey='r2') HTTP/1.1\r\n"
    "If-Match: *\r\n\r\n\r\n--changeset_b--\r\n--batch_a--\r\n"
).encode()
QUERY = (
    f"--batch_a\r\n{PART}\r\nGET /{ACCOUNT}/{TABLE}()?$filter=N%20gt%201&$top=2 HTTP/1.1\r\n"
    "Accept: application/json;odata=fullmetadata\r\n\r\n--batch_a--\r\n"
).encode()


def post(tables: Tables, body: bytes, content_type: str = BATCH_TYPE[1]) -> ReceivedAnswer:
    headers = (("Content-Type", content_type),)
    return tables.ask(FuzzRequest("POST", f"/{ACCOUNT}/$batch", headers, body))


@examples(1200)
@given(document=st.sampled_from([BATCH, QUERY]), changes=edits)
def test_edited_batches(
    tables: Tables, document: bytes, changes: list[tuple[str, int, bytes]]
) -> None:
    post(tables, edited(document, changes))


def test_every_prefix_of_a_batch_is_refused_or_taken(tables: Tables) -> None:
    for document in (BATCH, QUERY):
        for end in range(len(document)):
            post(tables, document[:end])


def test_every_line_of_a_batch_with_each_hostile_value(tables: Tables) -> None:
    for document in (BATCH, QUERY):
        lines = document.split(b"\r\n")
        for at in range(len(lines)):
            for value in HOSTILE[::3]:
                changed = [*lines[:at], value.encode(), *lines[at + 1 :]]
                post(tables, b"\r\n".join(changed))


@examples(200)
@given(content_type=hostile.map(sendable), body=st.binary(max_size=100))
def test_batches_of_another_type(tables: Tables, content_type: str, body: bytes) -> None:
    post(tables, body, f"multipart/mixed; boundary={content_type}")
    post(tables, BATCH, content_type)
