"""Batches at their limits, and bodies that are just valid, or just not valid, as multipart."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from strongroom import limits
from strongroom.errors.core import StorageError
from strongroom.slices import run_to_completion
from strongroom.wire.core import multipart
from tests.conformance.answer import Answer
from tests.conformance.table_client import TableClient, entity, expect_json, query, table_sas
from tests.conformance.transactions import (
    BATCH_TYPE,
    Change,
    Part,
    changeset,
    insert,
    parts,
    post,
    send,
)
from tests.hostile.pace import GROWTH_MAX, growth

MIB = 1024 * 1024
TYPE = "multipart/mixed; boundary=batch_a"
OUTER = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"


def part(
    head: str = "",
    line: str = "POST /Edge HTTP/1.1",
    outer: str = OUTER,
    body: str = '{"PartitionKey":"p","RowKey":"r"}',
) -> str:
    return f"{outer}\r\n{line}\r\n{head}\r\n{body}\r\n"


def batch(*changes: str, outer: str = "batch_a", inner: str = "cs") -> str:
    within = "".join(f"--{inner}\r\n{one}" for one in changes)
    head = f"--{outer}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n"
    return f"{head}{within}--{inner}--\r\n\r\n--{outer}--\r\n"


def ask(tables: TableClient, body: str, content_type: str = TYPE) -> Answer:
    fields = {**BATCH_TYPE, "Content-Type": content_type}
    return tables.send("POST", "/$batch", fields, body.encode("latin-1"))


def outcome(answer: Answer) -> tuple[int, str]:
    """Status and code of the batch, or of its only part."""
    if answer.status != 202:
        return answer.status, answer.code or ""
    (one,) = parts(answer)
    return one.status, one.code if one.status >= 400 else ""


PLAIN = batch(part())
OK = (201, "")
BAD = (400, "InvalidInput")
BODIES: dict[str, tuple[str, str, tuple[int, str]]] = {
    # body, Content-Type, outcome
    "as it should be": (PLAIN, TYPE, OK),
    "LF": (PLAIN.replace("\r\n", "\n"), TYPE, OK),
    "CR": (PLAIN.replace("\r\n", "\r"), TYPE, BAD),
    "text around": (f"hello\r\n{PLAIN}bye", TYPE, OK),
    "blanks behind boundaries": (PLAIN.replace("--cs\r\n", "--cs \t\r\n"), TYPE, OK),
    "no inner end": (PLAIN.replace("--cs--\r\n", ""), TYPE, BAD),
    "no outer end": (PLAIN.replace("--batch_a--\r\n", ""), TYPE, BAD),
    "nothing": ("", TYPE, BAD),
    "nothing but an end": ("--batch_a--\r\n", TYPE, BAD),
    "no changes": (batch(), TYPE, BAD),
    "two change sets": (PLAIN.replace("--batch_a--\r\n", "") + PLAIN, TYPE, BAD),
    "one boundary for both": (batch(part(), inner="batch_a"), TYPE, BAD),
    "a boundary that begins the other": (batch(part(), inner="batch_a2"), TYPE, OK),
    "no boundary": (PLAIN, "multipart/mixed", BAD),
    "an empty boundary": (PLAIN, 'multipart/mixed; boundary=""', BAD),
    "a quoted boundary": (PLAIN, 'multipart/mixed; boundary="batch_a"', OK),
    "another parameter before it": (PLAIN, "multipart/mixed; charset=x; boundary=batch_a", OK),
    "a parameter that ends so": (PLAIN, "multipart/mixed; xboundary=z; boundary=batch_a", OK),
    "capitals": (PLAIN, "MULTIPART/MIXED; BOUNDARY=batch_a", OK),
    "another type": (PLAIN, "multipart/form-data; boundary=batch_a", BAD),
    "70 characters": (batch(part(), outer="b" * 70), f"multipart/mixed; boundary={'b' * 70}", OK),
    "71 characters": (batch(part(), outer="b" * 71), f"multipart/mixed; boundary={'b' * 71}", BAD),
    "a part of another type": (batch(part(outer="Content-Type: text/plain\r\n")), TYPE, BAD),
    "a part in base64": (batch(part(outer=OUTER.replace("binary", "base64"))), TYPE, BAD),
    "a batch in a part": (batch(f"Content-Type: {TYPE}\r\n\r\n{PLAIN}"), TYPE, BAD),
    "a batch as a change": (batch(part(line="POST /$batch HTTP/1.1")), TYPE, BAD),
    "a method in lower case": (batch(part(line="post /Edge HTTP/1.1")), TYPE, BAD),
    "HTTP/2": (batch(part(line="POST /Edge HTTP/2.0")), TYPE, BAD),
    "no version": (batch(part(line="POST /Edge")), TYPE, OK),
    "a folded field": (batch(part("Prefer: return-\r\n content\r\n")), TYPE, BAD),
    "a field without a colon": (batch(part("Prefer\r\n")), TYPE, BAD),
    "64 fields": (batch(part("".join(f"A{n}: x\r\n" for n in range(64)))), TYPE, OK),
    "65 fields": (batch(part("".join(f"A{n}: x\r\n" for n in range(65)))), TYPE, BAD),
    "a type twice": (batch(part("Content-Type: application/json\r\n" * 2)), TYPE, BAD),
    "a tag twice": (batch(part('If-Match: *\r\nif-match: W/"x"\r\n')), TYPE, BAD),
    "a length that is": (batch(part("Content-Length: 33\r\n")), TYPE, OK),
    "a length that is too great": (batch(part("Content-Length: 9999\r\n")), TYPE, BAD),
    "a length that is too small": (batch(part("Content-Length: 5\r\n")), TYPE, BAD),
    "a signed length": (batch(part("Content-Length: +33\r\n")), TYPE, BAD),
    "chunks": (batch(part("Transfer-Encoding: chunked\r\n", body="0\r\n")), TYPE, BAD),
    "Atom": (batch(part("Content-Type: application/atom+xml\r\n")), TYPE,
             (415, "AtomFormatNotSupported")),
    "an escape that is none": (batch(part(line="POST /%zz HTTP/1.1")), TYPE, (400, "InvalidUri")),
    "another account": (batch(part(line="POST http://h/other/Edge HTTP/1.1")), TYPE,
                        (403, "AuthorizationFailure")),
    "X-HTTP-Method twice": (batch(part("X-HTTP-Method: PUT\r\n" * 2)), TYPE,
                            (400, "XMethodIncorrectCount")),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_bodies(tables: TableClient, name: str) -> None:
    """T-BAT-08, T-BAT-10, T-BAT-12."""
    body, content_type, expected = BODIES[name]
    answer = ask(tables, body, content_type)
    assert outcome(answer) == expected, answer
    found = expect_json(tables.get(query("Edge")), 200)["value"]
    assert len(found) == (expected == OK)


BULK: dict[str, tuple[Callable[[int], str], int]] = {
    # made of so many pieces, how many there are room for
    "boundaries": (lambda n: "--batch_a\r\n" * n, 380_000),
    "boundaries inside": (lambda n: batch("--cs\r\n" * n), 600_000),
    "tabs behind boundaries": (lambda n: ("--batch_a" + "\t" * n + "x\r\n") * 40 + PLAIN, 100_000),
    "empty lines in front": (lambda n: "\r\n" * n + PLAIN, 2_000_000),
    "empty lines before the request": (
        lambda n: batch(part(line="\r\n" * n + "POST /Edge HTTP/1.1")),
        2_000_000,
    ),
    "blanks in a request line": (lambda n: batch(part(line="POST" + " " * n + "/Edge")), 32_000),
}


def _taken_apart(body: bytes) -> None:
    with suppress(StorageError):
        run_to_completion(multipart.parse(TYPE, body, limits.BATCH_OPERATIONS_MAX))


@pytest.mark.parametrize("name", BULK)
def test_a_batch_that_is_made_to_be_slow_is_not(tables: TableClient, name: str) -> None:
    """T-BAT-10: the batch takes a time in proportion to its size, and gets an answer."""
    made, most = BULK[name]
    count = min(most // 64, 500)
    assert growth(_taken_apart, lambda n: made(n).encode("latin-1"), count) < GROWTH_MAX
    assert outcome(ask(tables, made(most))) in (OK, BAD)


@pytest.mark.parametrize("count", [99, 100, 101, 102, 5_000])
def test_a_hundred_changes(tables: TableClient, count: int) -> None:
    """T-BAT-04."""
    answered = send(tables, *(insert("Edge", "p", str(number)) for number in range(count)))
    if count <= 100:
        assert [one.status for one in answered] == [204] * count
        return
    (one,) = answered
    assert (one.status, one.code) == BAD
    assert one.message.startswith("99:The batch request operation exceeds the maximum 100 changes")
    assert expect_json(tables.get(query("Edge")), 200)["value"] == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_four_mebibytes(tables: TableClient, over: int) -> None:
    """T-BAT-11."""
    text = "x" * 30_000
    changes = [insert("Edge", "p", f"{n:02}", A=text, B=text) for n in range(69)]
    body = changeset(tables, changes)
    padded = b"y" * (4 * MIB + over - len(body) - 2) + b"\r\n" + body
    answer = post(tables, padded)
    if over > 0:
        assert (answer.status, answer.code) == (413, "RequestBodyTooLarge")
        return
    assert [one.status for one in parts(answer)] == [204] * 69


def test_a_refused_insert_says_which_preference_was_applied(tables: TableClient) -> None:
    """T-BAT-03: as by itself, and nothing else that it asked for."""
    assert send(tables, insert("Edge", "p", "r"))[0].status == 204
    for preference in ("return-no-content", "return-content"):
        change = Change(
            "POST", "/Edge", {"PartitionKey": "p", "RowKey": "r"}, (("Prefer", preference),), "7"
        )
        (one,) = send(tables, change)
        assert (one.status, one.code) == (409, "EntityAlreadyExists")
        assert one.message == "0:The specified entity already exists."
        assert one.headers["Preference-Applied"] == preference
        assert one.headers["Content-ID"] is None
    (one,) = send(tables, Change("POST", "/Edge", {"PartitionKey": "p", "RowKey": "r"}))
    assert one.headers["Preference-Applied"] is None


RANGE = {"spk": "b", "srk": "1", "epk": "b", "erk": "2"}
MATCH = (("If-Match", "*"),)


def _write(method: str, key: str, match: bool) -> Change:
    target = entity("Edge", key[0], key[1:])
    document = None if method == "DELETE" else {"N": 1}
    return Change(method, target, document, MATCH if match else ())


@pytest.mark.parametrize(
    ("method", "match", "letters"),
    [
        ("POST", False, "a"),
        ("PUT", True, "u"),
        ("PUT", False, "au"),
        ("MERGE", True, "u"),
        ("PATCH", False, "au"),
        ("DELETE", True, "d"),
    ],
)
def test_each_change_needs_its_letters_and_its_range(
    tables: TableClient, method: str, match: bool, letters: str
) -> None:
    """T-BAT-13, T-SAS-01, T-SAS-03."""

    def attempt(sp: str, *keys: str) -> list[Part]:
        token = table_sas(tables.credential, "Edge", sp=sp, **RANGE)
        changes = [
            insert("Edge", key[0], key[1:]) if method == "POST" else _write(method, key, match)
            for key in keys
        ]
        return send(tables, *changes, sas=token)

    for key in ("b1", "b2", "b0", "a1", "b3"):
        if method != "POST":
            assert send(tables, insert("Edge", key[0], key[1:]))[0].status == 204
    for letter in letters:
        (one,) = attempt("raud".replace(letter, ""), "b1")
        assert (one.status, one.code) == (403, "AuthorizationPermissionMismatch")
    for keys in (("b1", "b0"), ("b3",), ("a1",), ("b1", "a1")):
        (one,) = attempt("raud", *keys)
        assert (one.status, one.code) == (403, "AuthorizationFailure")
    assert [one.status // 100 for one in attempt(letters, "b1", "b2")] == [2, 2]


def test_a_query_in_a_batch_sees_its_range_only(tables: TableClient) -> None:
    """T-BAT-09, T-BAT-13, T-QRY-13."""
    for key in ("b1", "b2", "b0", "a1", "b3"):
        assert send(tables, insert("Edge", key[0], key[1:]))[0].status == 204

    def ask_for(target: str, sp: str) -> Part:
        line = f"GET {tables.prefix}{target} HTTP/1.1"
        body = f"--batch_a\r\n{part(line=line, body='')}--batch_a--\r\n"
        (one,) = parts(post(tables, body.encode(), table_sas(tables.credential, "Edge", sp=sp,
                                                             **RANGE)))  # fmt: skip
        return one

    assert [one["RowKey"] for one in ask_for("/Edge()", "r").json["value"]] == ["1", "2"]
    assert ask_for(entity("Edge", "b", "1"), "r").status == 200
    assert ask_for(entity("Edge", "b", "0"), "r").code == "AuthorizationFailure"
    assert ask_for("/Edge()", "aud").code == "AuthorizationPermissionMismatch"


def test_an_answer_never_holds_what_a_header_of_the_request_hid(tables: TableClient) -> None:
    """T-BAT-01: Content-ID is returned unchanged, and cannot start another field."""
    for row, content_id in enumerate(("\xff<x>", "i" * 32_000, "a: b")):
        outer = f"{OUTER}Content-ID: {content_id}\r\n"
        document = f'{{"PartitionKey":"p","RowKey":"{row}"}}'
        body = batch(part(outer=outer, body=document))
        (one,) = parts(ask(tables, body))
        assert one.status == 201
        found: Any = one.headers["Content-ID"]
        assert str(found) == content_id or "\xff" in content_id
    evil = batch(part(outer=f"{OUTER}Content-ID: a\rSet-Cookie: b\r\n"))
    assert outcome(ask(tables, evil)) == BAD


def test_json_documents_are_what_clients_of_other_services_may_send(tables: TableClient) -> None:
    """T-BAT-08: a part's body is read as strictly as one by itself."""
    for body in ("[]", "{", '{"PartitionKey":"p","RowKey":"r","A":[1]}', "\xef\xbb\xbf{}x"):
        (one,) = parts(ask(tables, batch(part(body=body))))
        assert (one.status, one.code) == BAD
    assert json.loads(tables.get("/Edge").body)["value"] == []
