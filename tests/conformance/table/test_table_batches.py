"""Entity group transactions: atomic, in order, each part authorized by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.sas import account_sas
from tests.conformance.table_client import (
    TableClient,
    entity,
    expect_json,
    insert,
    query,
    table_sas,
)
from tests.conformance.transactions import (
    BATCH_TYPE,
    Change,
    Part,
    changeset,
    parts,
    post,
    send,
    single,
)
from tests.conformance.transactions import insert as insertion

ANY = (("If-Match", "*"),)
MERGE = (("X-HTTP-Method", "MERGE"),)


def rows(tables: TableClient, table: str) -> dict[str, Any]:
    """RowKey -> N of what is in a table."""
    value = expect_json(tables.get(query(table)), 200)["value"]
    return {row["RowKey"]: row.get("N") for row in value}


def refused(answers: list[Part], index: int, status: int, code: str) -> str:
    """The text behind the number of the part, which is the only answer."""
    (answer,) = answers
    assert (answer.status, answer.code) == (status, code), answer
    number, _, text = answer.message.partition(":")
    assert number == str(index), answer.message
    assert answer.headers["DataServiceVersion"] == "3.0;"
    assert answer.headers["Content-ID"] is None
    return text


def test_every_kind_of_write_in_one_transaction(tables: TableClient, table: str) -> None:
    """T-BAT-01, T-BAT-02."""
    for key in "abcd":
        insert(tables, table, {"PartitionKey": "p", "RowKey": key, "N": 0, "M": 0})
    answers = send(
        tables,
        Change("PUT", entity(table, "p", "a"), {"N": 1}, ANY),
        Change("PATCH", entity(table, "p", "b"), {"N": 2}, ANY),
        Change("DELETE", entity(table, "p", "c"), None, ANY),
        Change("POST", entity(table, "p", "d"), {"N": 3}, (*MERGE, *ANY)),
        Change("PUT", entity(table, "p", "e"), {"N": 4}),
        Change("MERGE", entity(table, "p", "f"), {"N": 5}, (), "x 7"),
        Change("POST", f"/{table}", {"PartitionKey": "p", "RowKey": "g", "N": 6}),
        insertion(table, "p", "h", N=7),
    )
    assert [one.status for one in answers] == [204] * 6 + [201, 204]
    found = expect_json(tables.get(query(table)), 200)["value"]
    assert [(row["RowKey"], row["N"], row.get("M")) for row in found] == [
        ("a", 1, None), ("b", 2, 0), ("d", 3, 0), ("e", 4, None), ("f", 5, None), ("g", 6, None),
        ("h", 7, None),
    ]  # fmt: skip
    assert answers[5].headers["Content-ID"] == "x 7"
    tags = {row["RowKey"]: row["odata.etag"] for row in found}
    assert [one.headers["ETag"] for one in answers] == [
        tags["a"], tags["b"], None, tags["d"], tags["e"], tags["f"], tags["g"], tags["h"],
    ]  # fmt: skip
    assert len({row["Timestamp"] for row in found}) == 1
    for one in answers:
        assert one.headers["X-Content-Type-Options"] == "nosniff"
        assert one.headers["Cache-Control"] == "no-cache"
        assert one.headers["DataServiceVersion"] == "3.0;"
    created, quiet = answers[6], answers[7]
    assert created.json["N"] == 6 and created.json["odata.etag"] == tags["g"]
    assert created.headers["Location"].endswith(f"/{table}(PartitionKey='p',RowKey='g')")
    assert quiet.headers["Preference-Applied"] == "return-no-content" and quiet.body == b""


REFUSALS = [
    (Change("PUT", "a", {"N": 1}, (("If-Match", "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""),)),
     412, "UpdateConditionNotSatisfied"),
    (Change("PUT", "missing", {"N": 1}, ANY), 404, "ResourceNotFound"),
    (Change("DELETE", "missing", None, ANY), 404, "ResourceNotFound"),
    (Change("DELETE", "a"), 400, "MissingRequiredHeader"),
    (Change("POST", "", {"PartitionKey": "p", "RowKey": "a"}), 409, "EntityAlreadyExists"),
    (Change("POST", "", {"PartitionKey": "p"}), 400, "PropertiesNeedValue"),
    (Change("POST", "", {"PartitionKey": "p", "RowKey": "x/y"}), 400, "OutOfRangeInput"),
    (Change("POST", "", {"PartitionKey": "p", "RowKey": "x", "A": {}}), 400, "InvalidInput"),
    (Change("PUT", "x", {"A b": 1}), 400, "PropertyNameInvalid"),
    (Change("GET", "a"), 400, "InvalidInput"),
    (Change("POST", "/Tables", {"TableName": "Other"}), 400, "InvalidInput"),
    (Change("PUT", "/xyz?comp=acl"), 400, "InvalidInput"),
    (Change("PUT", "(x", {}), 400, "InvalidUri"),
    (Change("OPTIONS", "a"), 400, "InvalidInput"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "status", "code"), REFUSALS, ids=repr)
def test_one_refusal_undoes_everything(
    tables: TableClient, table: str, change: Change, status: int, code: str
) -> None:
    """T-BAT-03, T-BAT-08."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "a", "N": 0})
    target = change.target
    if not target.startswith("/"):
        target = entity(table, "p", target) if target.isalpha() else f"/{table}{target}"
    bad = Change(change.method, target, change.document, change.headers, "9")
    answers = send(tables, insertion(table, "p", "b"), bad, insertion(table, "p", "c"))
    refused(answers, 1, status, code)
    assert rows(tables, table) == {"a": 0}


def test_a_hundred_changes_and_no_more(tables: TableClient, table: str) -> None:
    """T-BAT-04."""
    changes = [insertion(table, "p", str(number)) for number in range(101)]
    text = refused(send(tables, *changes), 99, 400, "InvalidInput")
    assert text == ("The batch request operation exceeds the maximum 100 changes per change set.")
    assert rows(tables, table) == {}
    assert [one.status for one in send(tables, *changes[:100])] == [204] * 100


def test_one_entity_group(tables: TableClient, table: str) -> None:
    """T-BAT-05."""
    expect_json(tables.post("/Tables", {"TableName": f"{table}x"}), 201)
    for other in (insertion(table, "q", "b"), insertion(f"{table}x", "p", "b")):
        answers = send(tables, insertion(table, "p", "a"), other)
        text = refused(answers, 1, 400, "CommandsInBatchActOnDifferentPartitions")
        assert text == "All commands in a batch must operate on same entity group."
    # The case of a table's name does not matter.
    answers = send(tables, insertion(table, "p", "a"), insertion(table.lower(), "p", "b"))
    assert [one.status for one in answers] == [204, 204]
    assert set(rows(tables, table)) == {"a", "b"}


def test_an_entity_once(tables: TableClient, table: str) -> None:
    """T-BAT-06."""
    twice = Change("DELETE", entity(table, "p", "a"), None, ANY)
    text = refused(
        send(tables, insertion(table, "p", "a"), insertion(table, "p", "b"), twice),
        *(2, 400, "InvalidDuplicateRow"),
    )
    assert text == (
        "The batch request contains multiple changes with same row key. "
        "An entity can appear only once in a batch request."
    )
    assert rows(tables, table) == {}
    answers = send(tables, insertion(table, "p", "a"), insertion(table, "p", "A"))
    assert [one.status for one in answers] == [204, 204]


def test_a_table_that_is_not_there(tables: TableClient) -> None:
    """T-BAT-07."""
    text = refused(send(tables, insertion("NoSuchTable", "p", "a")), 0, 404, "TableNotFound")
    assert text == "The table specified does not exist."


def test_one_query_by_itself(tables: TableClient, table: str) -> None:
    """T-BAT-09."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "a", "N": 0})
    (point,) = parts(post(tables, single(tables, Change("GET", entity(table, "p", "a")))))
    assert (point.status, point.json["N"]) == (200, 0)
    assert point.headers["ETag"] == point.json["odata.etag"]
    (page,) = parts(post(tables, single(tables, Change("GET", query(table, filter="N ge 0")))))
    assert page.status == 200 and [row["RowKey"] for row in page.json["value"]] == ["a"]
    missing = Change("GET", entity(table, "p", "x"))
    (answer,) = parts(post(tables, single(tables, missing)))
    assert (answer.status, answer.code) == (404, "ResourceNotFound")
    bad = Change("GET", query(table, filter="N eq"))
    (answer,) = parts(post(tables, single(tables, bad)))
    assert (answer.status, answer.code) == (400, "InvalidInput")


@pytest.mark.parametrize(
    "change",
    [
        insertion("T", "p", "a"),
        Change("DELETE", "/T(PartitionKey='p',RowKey='a')", None, ANY),
        Change("GET", "/Tables"),
        Change("GET", "/T?comp=acl"),
        Change("GET", "/?comp=properties&restype=service"),
    ],
    ids=repr,
)
def test_nothing_else_stands_outside_of_a_change_set(
    tables: TableClient, table: str, change: Change
) -> None:
    """T-BAT-09."""
    moved = Change(change.method, change.target.replace("/T", f"/{table}", 1)
                   if change.target.startswith("/T?") or change.target.startswith("/T(")
                   or change.target == "/T" else change.target,
                   change.document, change.headers)  # fmt: skip
    (answer,) = parts(post(tables, single(tables, moved)))
    assert (answer.status, answer.code) == (400, "InvalidInput"), answer
    assert rows(tables, table) == {}


def test_bodies_that_are_no_batch(tables: TableClient, table: str) -> None:
    """T-BAT-10."""
    good = changeset(tables, [insertion(table, "p", "a")])
    bodies = [
        b"",
        b"{}",
        good.replace(b"--batch_a--", b""),
        good.replace(b"--changeset_b--", b""),
        good.replace(b"--batch_a--", b"") + good,
        good.replace(b"application/http", b"application/json"),
        good.replace(b" HTTP/1.1", b" HTTP/9.9"),
        changeset(tables, []),
    ]
    for body in bodies:
        expect_json(post(tables, body), 400, "InvalidInput")
    for kind in ("application/json", "multipart/mixed", "multipart/mixed; boundary="):
        answer = tables.send("POST", "/$batch", {"Content-Type": kind}, good)
        expect_json(answer, 400, "InvalidInput")
    expect_json(tables.send("POST", "/$batch", {}, good), 400, "InvalidInput")
    assert rows(tables, table) == {}


def test_a_batch_of_more_than_four_mebibytes(tables: TableClient, table: str) -> None:
    """T-BAT-11."""
    texts = {f"P{number}": "x" * 32_000 for number in range(15)}
    changes = [insertion(table, "p", str(number), **texts) for number in range(9)]
    assert len(changeset(tables, changes)) > 4 * 1024 * 1024
    answer = tables.another().send("POST", "/$batch", BATCH_TYPE, changeset(tables, changes))
    expect_json(answer, 413, "RequestBodyTooLarge")
    assert [one.status for one in send(tables, *changes[:8])] == [204] * 8
    assert set(rows(tables, table)) == set("01234567")


def test_large_entities_go_a_hundred_at_once(tables: TableClient, table: str) -> None:
    """T-BAT-04."""
    texts = {f"P{number}": "x" * 32_000 for number in range(15)}
    names = [f"{number:02}" for number in range(100)]
    for at in range(0, 100, 8):
        changes = [insertion(table, "p", name, **texts) for name in names[at : at + 8]]
        assert {one.status for one in send(tables, *changes)} == {204}
    gone = [Change("DELETE", entity(table, "p", name), None, ANY) for name in names]
    answers = send(tables, *gone)
    assert [one.status for one in answers] == [204] * 100, answers[0]
    assert rows(tables, table) == {}


def test_urls_and_line_ends_in_several_forms(tables: TableClient, table: str) -> None:
    """T-BAT-12."""
    document = {"PartitionKey": "p", "RowKey": "a"}
    urls = [f"{tables.url}/{table}", f"{tables.prefix}/{table}", f"/{table}", table, f"{table}()"]
    for number, url in enumerate(urls):
        change = Change("POST", f"ftp://{table}", {**document, "RowKey": str(number)})
        body = changeset(tables, [change]).replace(f"ftp://{table}".encode(), url.encode())
        if number % 2:
            body = body.replace(b"\r\n", b"\n")
        (answer,) = parts(post(tables, body))
        assert answer.status == 201, (url, answer)
    assert set(rows(tables, table)) == {"0", "1", "2", "3", "4"}
    elsewhere = Change("POST", f"http://127.0.0.1:1/other/{table}", document)
    refused(send(tables, elsewhere), 0, 403, "AuthorizationFailure")


PERMITTED = [
    ("a", insertion("T", "p", "n"), True),
    ("rud", insertion("T", "p", "n"), False),
    ("u", Change("PUT", "x", {"N": 1}, ANY), True),
    ("rad", Change("PUT", "x", {"N": 1}, ANY), False),
    ("au", Change("PUT", "x", {"N": 1}), True),
    ("u", Change("PUT", "x", {"N": 1}), False),
    ("a", Change("PATCH", "x", {"N": 1}), False),
    ("d", Change("DELETE", "x", None, ANY), True),
    ("rau", Change("DELETE", "x", None, ANY), False),
]


@pytest.mark.parametrize(("letters", "change", "permitted"), PERMITTED, ids=repr)
def test_each_part_needs_its_own_letters(
    tables: TableClient, table: str, letters: str, change: Change, permitted: bool
) -> None:
    """T-BAT-13."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "x", "N": 0})
    target = entity(table, "p", "x") if change.target == "x" else f"/{table}"
    token = table_sas(tables.credential, table, sp=letters)
    moved = Change(change.method, target, change.document, change.headers)
    answers = send(tables, moved, sas=token)
    if permitted:
        assert answers[0].status == 204, answers
        return
    refused(answers, 0, 403, "AuthorizationPermissionMismatch")
    assert rows(tables, table) == {"x": 0}


def test_a_sas_reaches_its_table_and_its_keys_only(tables: TableClient, table: str) -> None:
    """T-BAT-13."""
    expect_json(tables.post("/Tables", {"TableName": f"{table}x"}), 201)
    token = table_sas(tables.credential, table, sp="a", spk="p", srk="b", epk="p", erk="d")
    outside = send(tables, insertion(table, "p", "b"), insertion(table, "p", "e"), sas=token)
    refused(outside, 1, 403, "AuthorizationFailure")
    other = send(tables, insertion(f"{table}x", "p", "b"), sas=token)
    refused(other, 0, 403, "AuthorizationFailure")
    # In whatever case the table is named.
    inside = send(tables, insertion(table.upper(), "p", "b"), insertion(table, "p", "d"), sas=token)
    assert [one.status for one in inside] == [204, 204]
    read = table_sas(tables.credential, table, sp="r", spk="p", srk="c")
    (page,) = parts(post(tables, single(tables, Change("GET", query(table))), read))
    assert [row["RowKey"] for row in page.json["value"]] == ["d"]


def test_an_account_sas_is_judged_by_each_part(tables: TableClient, table: str) -> None:
    """T-BAT-13."""
    change = insertion(table, "p", "a")
    for kinds, letters, code in (
        ("o", "rud", "AuthorizationPermissionMismatch"),
        ("sc", "a", "AuthorizationResourceTypeMismatch"),
    ):
        token = account_sas(tables.credential, ss="t", srt=kinds, sp=letters)
        refused(send(tables, change, sas=token), 0, 403, code)
    token = account_sas(tables.credential, ss="t", srt="o", sp="a")
    assert [one.status for one in send(tables, change, sas=token)] == [204]
    token = account_sas(tables.credential, ss="bq", srt="o", sp="a")
    answer = post(tables, changeset(tables, [change]), token)
    assert (answer.status, answer.code) == (403, "AuthorizationServiceMismatch")


def test_who_may_not_send_a_batch(tables: TableClient, table: str) -> None:
    """T-BAT-13."""
    body = changeset(tables, [insertion(table, "p", "a")])
    answer = tables.anonymous.send("POST", "/$batch", BATCH_TYPE, body)
    assert answer.status == 401 and answer.code == "NoAuthenticationInformation"
    token = table_sas(tables.credential, table, sp="raud", se="2020-01-01T00:00:00Z")
    answer = post(tables, body, token)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")
    assert rows(tables, table) == {}


def test_transactions_that_meet_are_one_behind_the_other(tables: TableClient, table: str) -> None:
    """T-BAT-02."""
    for key in "ab":
        insert(tables, table, {"PartitionKey": "p", "RowKey": key, "N": 0})
    bodies = [
        changeset(
            tables,
            [Change("PUT", entity(table, "p", key), {"N": number}, ANY) for key in "ab"],
        )
        for number in range(1, 9)
    ]
    answers = [tables.start("POST", "/$batch", BATCH_TYPE, body) for body in bodies]
    for answer in answers:
        assert [one.status for one in parts(answer.result())] == [204, 204]
    numbers = rows(tables, table)
    assert numbers["a"] == numbers["b"] != 0
