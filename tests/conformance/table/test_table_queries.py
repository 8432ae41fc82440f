"""Query Entities: filters, pages, selections, and the consistency of one page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.table_client import (
    TableClient,
    entity,
    expect_json,
    insert,
    query,
    table_sas,
)
from tests.conformance.transactions import Change, send
from tests.conformance.transactions import insert as part

NEXT = ("NextPartitionKey", "NextRowKey")
Keys = list[tuple[str, str]]


def pages(tables: TableClient, table: str, **options: object) -> Iterator[list[Any]]:
    """The pages of a query, as a client follows them."""
    for _ in range(100):
        answer = tables.get(query(table, **options))
        yield expect_json(answer, 200)["value"]
        tokens = {name: answer.get(f"x-ms-continuation-{name}") for name in NEXT}
        if tokens[NEXT[0]] is None:
            assert tokens[NEXT[1]] is None
            return
        options |= {name: value for name, value in tokens.items() if value is not None}
    raise AssertionError("the pages do not end")


def found(tables: TableClient, table: str, **options: object) -> Keys:
    """The keys of everything that a query finds, in order."""
    every = [row for page in pages(tables, table, **options) for row in page]
    return [(row["PartitionKey"], row["RowKey"]) for row in every]


def fill(tables: TableClient, table: str, keys: Keys, **properties: object) -> None:
    """Insert entities, with as few requests as can be."""
    for partition in dict.fromkeys(partition for partition, _ in keys):
        rows = [row for name, row in keys if name == partition]
        for at in range(0, len(rows), 100):
            changes = [part(table, partition, row, **properties) for row in rows[at : at + 100]]
            answers = send(tables, *changes)
            assert [one.status for one in answers] == [204] * len(changes), answers[0]


def test_entities_come_in_the_order_of_their_keys(tables: TableClient, table: str) -> None:
    """T-QRY-01."""
    keys = [("b", "a"), ("a", "b"), ("a", ""), ("", ""), ("a", "ab"), ("é", "z"), ("B", "a"),
            ("\uffff", "1"), ("\U0001f600", "1"), ("a'b", "c d")]  # fmt: skip
    assert found(tables, table) == []
    fill(tables, table, keys)
    ordered = sorted(keys, key=lambda pair: (pair[0].encode(), pair[1].encode()))
    assert found(tables, table) == ordered
    whole = expect_json(tables.get(f"/{table}"), 200)
    assert len(whole["value"]) == len(keys)
    assert whole["odata.metadata"].endswith(f"$metadata#{table}")


FILTERS = [
    ("N gt 1", ["c", "d"]),
    ("N ge 1 and N lt 3", ["b", "c"]),
    ("S eq 'it''s'", ["b"]),
    ("Flag", ["a", "c"]),
    ("not Flag", ["b", "d"]),
    ("Long eq 5000000000L", ["a"]),
    ("D gt 0.5", ["b"]),
    ("When ge datetime'2020-01-01T00:00:00Z'", ["c"]),
    ("Id eq guid'8F9A3F0E-0000-4000-8000-00000000ABCD'", ["d"]),
    ("Bytes eq X'00ff'", ["d"]),
    ("(N eq 0 or N eq 3) and RowKey ne 'a'", ["d"]),
    ("Timestamp gt datetime'2000-01-01'", ["a", "b", "c", "d"]),
    # Other types, and properties that are not there.
    ("S eq 1", []),
    ("S ne 1", []),
    ("Absent ne 1", []),
    ("not (Absent eq 1)", ["a", "b", "c", "d"]),
    ("N eq '1'", []),
    ("", ["a", "b", "c", "d"]),
]


@pytest.fixture(scope="module")
def typed_table(tables: TableClient) -> str:
    """A table with four entities of all types."""
    name = "TypedEntities"
    expect_json(tables.post("/Tables", {"TableName": name}), 201)
    rows: list[dict[str, object]] = [
        {"N": 0, "Flag": True, "Long": "5000000000", "Long@odata.type": "Edm.Int64"},
        {"N": 1, "Flag": False, "S": "it's", "D": 1.5},
        {"N": 2, "Flag": True, "When": "2020-01-01T00:00:00Z", "When@odata.type": "Edm.DateTime"},
        {"N": 3, "Flag": False, "Id": "8f9a3f0e-0000-4000-8000-00000000abcd",
         "Id@odata.type": "Edm.Guid", "Bytes": "AP8=", "Bytes@odata.type": "Edm.Binary"},
    ]  # fmt: skip
    for key, row in zip("abcd", rows, strict=True):
        insert(tables, name, {"PartitionKey": "p", "RowKey": key, **row})
    return name


@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_a_filter_keeps_what_matches(
    tables: TableClient, typed_table: str, text: str, expected: list[str]
) -> None:
    """T-QRY-02, T-QRY-03."""
    assert [row for _, row in found(tables, typed_table, filter=text)] == expected


def test_a_filter_that_cannot_be_read_is_refused(tables: TableClient, table: str) -> None:
    """T-QRY-04."""
    answer = tables.get(query(table, filter="N eq"))
    assert "At position 5: " in expect_json(answer, 400, "InvalidInput")
    answer = tables.get(query(table, filter="startswith(S,'a')"))
    assert "startswith" in expect_json(answer, 501, "NotImplemented")
    answer = tables.get(query(table, filter=" or ".join(["N eq 1"] * 101)))
    assert "100 comparisons" in expect_json(answer, 400, "InvalidInput")


def test_options_that_the_service_does_not_have(tables: TableClient, table: str) -> None:
    """T-QRY-05."""
    for option in ("orderby", "skip"):
        answer = tables.get(query(table, **{option: "1"}))
        assert f"${option}" in expect_json(answer, 501, "NotImplemented")
    answer = tables.get(f"/{table}()?$orderBy=N")
    assert "$orderBy" in expect_json(answer, 501, "NotImplemented")


@pytest.mark.parametrize("top", ["1001", "-1", "x"])
def test_top_is_from_0_to_1000(tables: TableClient, table: str, top: str) -> None:
    """T-QRY-06."""
    answer = tables.get(query(table, top=top))
    assert answer.status == 400 and json.loads(answer.body)["odata.error"]["code"] == answer.code


def test_a_page_without_entities_is_the_last(tables: TableClient, table: str) -> None:
    """T-QRY-06."""
    fill(tables, table, [("p", "1"), ("p", "2")])
    for options in ({}, {"filter": "PartitionKey eq 'p'"}, {"filter": "PartitionKey eq 'p' and "
                    "RowKey eq '1'"}, {"select": "N"}):  # fmt: skip
        answer = tables.get(query(table, top=0, **options))
        assert expect_json(answer, 200)["value"] == []
        assert not [name for name in answer.names() if name.startswith("x-ms-continuation")]
    expect_json(tables.get(query("missing", top=0)), 404, "TableNotFound")


BOOLEANS: list[tuple[str, str]] = [
    ("true", "abcd"),
    ("false", ""),
    ("not false", "abcd"),
    ("TRUE and Flag eq True", "ac"),
    ("(true and RowKey eq 'b') or (false or RowKey eq 'd')", "bd"),
    ("PartitionKey eq 'p' and RowKey eq 'c' and false", ""),
    ("PartitionKey eq 'p' and (RowKey eq 'c' or false)", "c"),
    ("not (Flag eq FALSE)", "ac"),
]


@pytest.mark.parametrize(("text", "expected"), BOOLEANS)
def test_constants_in_filters(
    tables: TableClient, typed_table: str, text: str, expected: str
) -> None:
    """T-QRY-02."""
    assert "".join(row for _, row in found(tables, typed_table, filter=text)) == expected


def test_pages_hold_everything_once(tables: TableClient, table: str) -> None:
    """T-QRY-06, T-QRY-07."""
    keys = [(partition, str(row)) for partition in "ab" for row in range(5)]
    fill(tables, table, keys)
    for top in (1, 2, 3, 5, 9, 10, 11, 1000):
        sizes = [len(page) for page in pages(tables, table, top=top)]
        assert sizes == [top] * (10 // top) + ([10 % top] if 10 % top else []), top
        assert found(tables, table, top=top) == keys
    assert found(tables, table, top=2, filter="RowKey gt '2'") == [
        key for key in keys if key[1] > "2"
    ]
    # Matching entities are not always adjacent.
    sparse = "RowKey eq '0' or RowKey eq '4'"
    assert [len(page) for page in pages(tables, table, top=3, filter=sparse)] == [3, 1]


def test_a_page_holds_a_thousand(tables: TableClient, table: str) -> None:
    """T-QRY-07."""
    keys = [("p", f"{row:04}") for row in range(1001)]
    fill(tables, table, keys)
    assert [len(page) for page in pages(tables, table)] == [1000, 1]
    assert found(tables, table, filter="RowKey ge '0998'") == keys[998:]
    points = "PartitionKey eq 'p' and (RowKey eq '0003' or RowKey eq '1000' or RowKey eq 'x')"
    assert found(tables, table, filter=points) == [keys[3], keys[1000]]
    assert [len(page) for page in pages(tables, table, filter=points, top=1)] == [1, 1]


FORGED = [
    {"NextPartitionKey": "p"},
    {"NextPartitionKey": "1!4!AAAA!"},
    {"NextPartitionKey": "1!0!", "NextRowKey": "x"},
    {"NextRowKey": "1!0!"},
    {"NextPartitionKey": ""},
]


@pytest.mark.parametrize("options", FORGED)
def test_a_token_that_no_page_had_is_refused(
    tables: TableClient, table: str, options: dict[str, str]
) -> None:
    """T-QRY-08."""
    expect_json(tables.get(query(table, **options)), 400, "InvalidInput")


def test_a_token_may_name_any_position(tables: TableClient, table: str) -> None:
    """T-QRY-08."""
    fill(tables, table, [("a", "1"), ("b", "1")])
    # `b` and nothing behind it; bytes that are no text.
    assert found(tables, table, NextPartitionKey="1!4!Yg--") == [("b", "1")]
    assert found(tables, table, NextPartitionKey="1!4!_w--", NextRowKey="1!4!_w--") == []


def test_only_the_properties_that_are_named_come(tables: TableClient, table: str) -> None:
    """T-QRY-09."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "1", "A": 1, "B": "b"})
    insert(tables, table, {"PartitionKey": "p", "RowKey": "2", "B": "c"})
    headers = {"Accept": "application/json;odata=nometadata"}
    answer = tables.get(query(table, select="A,RowKey"), headers)
    assert expect_json(answer, 200) == {
        "value": [{"A": 1, "RowKey": "1"}, {"A": None, "RowKey": "2"}]
    }
    answer = tables.get(query(table, select="B", filter="A eq 1"), headers)
    assert expect_json(answer, 200) == {"value": [{"B": "b"}]}


def test_a_page_is_a_few_mebibytes_and_large_entities_come_whole(
    tables: TableClient, table: str
) -> None:
    """T-QRY-10."""
    texts = {f"P{number}": "x" * 30_000 for number in range(15)}
    for number in range(12):
        row = {"PartitionKey": "p", "RowKey": f"{number:02}", "N": number, "Z": "z"}
        insert(tables, table, {**row, **texts})
    for options in ({}, {"filter": "Z eq 'z'"}, {"top": 3}, {"top": 1}):
        rows: list[Any] = []
        for page in pages(tables, table, **options):
            assert len(json.dumps(page)) < 5 * 1024 * 1024
            rows += page
        assert [row["N"] for row in rows] == list(range(12)), options
        assert all(row["P14"] == texts["P14"] for row in rows)
    points = "PartitionKey eq 'p' and (RowKey eq '03' or RowKey eq '07')"
    rows = [row for page in pages(tables, table, filter=points) for row in page]
    assert [(row["N"], len(row["P7"])) for row in rows] == [(3, 30_000), (7, 30_000)]


def test_a_page_sees_one_moment_of_a_partition(tables: TableClient, table: str) -> None:
    """T-QRY-11."""
    keys = [("p", f"{row:03}") for row in range(300)]
    fill(tables, table, keys, N=0)
    ends = (keys[0], keys[-1])

    def write(number: int) -> list[int]:
        changes = [
            Change("PUT", entity(table, *key), {"N": number}, (("If-Match", "*"),)) for key in ends
        ]
        return [one.status for one in send(writer, *changes)]

    writer = tables.another()
    filters = (
        "N ge 0",
        "PartitionKey eq 'p'",
        "PartitionKey eq 'p' and (RowKey eq '000' or RowKey eq '299')",
        "RowKey lt '100' or RowKey gt '200'",
    )
    for number in range(1, 13):
        later = [tables.start("GET", query(table, filter=text)) for text in filters]
        assert write(number) == [204, 204]
        for text, answer in zip(filters, later, strict=True):
            rows = expect_json(answer.result(), 200)["value"]
            numbers = {row["N"] for row in rows if (row["PartitionKey"], row["RowKey"]) in ends}
            assert len(numbers) == 1, (text, numbers)
    writer.close()


def test_a_table_that_is_not_there(tables: TableClient) -> None:
    """T-QRY-12."""
    expect_json(tables.get(query("NoSuchTable")), 404, "TableNotFound")


RANGES: list[tuple[dict[str, str], Keys]] = [
    ({}, [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("c", "1")]),
    ({"spk": "b"}, [("b", "1"), ("b", "2"), ("c", "1")]),
    ({"spk": "a", "srk": "2"}, [("a", "2"), ("b", "1"), ("b", "2"), ("c", "1")]),
    ({"epk": "b"}, [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]),
    ({"epk": "b", "erk": "1"}, [("a", "1"), ("a", "2"), ("b", "1")]),
    ({"spk": "a", "srk": "2", "epk": "b", "erk": "1"}, [("a", "2"), ("b", "1")]),
    ({"spk": "x", "epk": "y"}, []),
]


@pytest.mark.parametrize(("bounds", "expected"), RANGES)
def test_a_sas_shows_its_range_of_keys(
    tables: TableClient, table: str, bounds: dict[str, str], expected: Keys
) -> None:
    """T-QRY-13."""
    fill(tables, table, RANGES[0][1])
    token = table_sas(tables.credential, table, sp="r", **bounds)
    for text in ("", "$filter=RowKey%20ge%20%270%27&", "$top=1&"):
        keys: Keys = []
        tokens = ""
        while True:
            answer = tables.get(f"/{table}()?{text}{tokens}{token}", (), None)
            rows = expect_json(answer, 200)["value"]
            keys += [(row["PartitionKey"], row["RowKey"]) for row in rows]
            if answer.get("x-ms-continuation-NextPartitionKey") is None:
                break
            given = ((name, answer[f"x-ms-continuation-{name}"]) for name in NEXT)
            tokens = "".join(f"{name}={value}&" for name, value in given)
        assert keys == expected, text


def test_a_query_needs_the_letter_r(tables: TableClient, table: str) -> None:
    """T-QRY-13."""
    token = table_sas(tables.credential, table, sp="aud")
    answer = tables.get(f"/{table}()?{token}", (), None)
    expect_json(answer, 403, "AuthorizationPermissionMismatch")
