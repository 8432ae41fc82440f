"""The page about compatibility, and the README's line about it, are up to date."""

from __future__ import annotations

import pytest

from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.blob import unserved
from strongroom.operations.core.endpoint import Endpoint
from tests.operations.transcript import rows, rule_numbers, rules_text
from tests.tidy import compatibility
from tests.tidy.compatibility import NO, NO_EFFECT, PARTLY, REFUSED, YES
from tests.tidy.test_transcript import ENDPOINTS

BLOBS = blob_service.ENDPOINT
REMEDY = "run: python -m tests.tidy.compatibility"


def test_the_page_is_what_is_generated() -> None:
    assert compatibility.PAGE.read_text(encoding="utf-8") == compatibility.page(), REMEDY


def test_the_readme_has_the_summary() -> None:
    text = compatibility.README.read_text(encoding="utf-8")
    assert compatibility.README_LINE.findall(text) == [compatibility.readme_line()], REMEDY


def entry(endpoint: Endpoint, name: str) -> compatibility.Entry:
    groups = compatibility.entries(endpoint).values()
    [found] = [one for group in groups for one in group if one.name == name]
    return found


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.service.value)
def test_every_operation_of_the_transcript_is_on_the_page_once(endpoint: Endpoint) -> None:
    groups = compatibility.entries(endpoint).values()
    transcribed = rows(endpoint.service.value)
    assert [one.name for group in groups for one in group] == [row.operation for row in transcribed]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.service.value)
def test_what_the_tables_leave_out_is_about_operations_and_rules_that_exist(
    endpoint: Endpoint,
) -> None:
    more = compatibility.further(compatibility.title(endpoint))
    ids = {row.id for row in rows(endpoint.service.value)} | {compatibility.EVERY}
    named = {one for one, _, _ in more.headers}
    named |= {one for note in more.notes for one in note.operations}
    assert named - ids == set()
    cited = {rule for _, rule in more.always} | {note.rule for note in more.notes}
    cited |= {text for _, _, text in more.headers if compatibility.RULE.fullmatch(text)}
    assert cited - set(rule_numbers(endpoint.service.value)) == set()


def test_what_holds_for_all_services_cites_rules_that_exist() -> None:
    cited = {rule for _, rule in compatibility.further("All services").always}
    assert cited
    assert cited - set(rule_numbers("blob")) == set()


@pytest.mark.parametrize("title", ["All services", *(map(compatibility.title, ENDPOINTS))])
def test_what_is_served_in_part_is_in_the_words_of_its_rule(title: str) -> None:
    for note in compatibility.further(title).notes:
        assert note.words
        assert note.words in rule_text(note.rule), f"further.md: does {note.rule} still say so?"


def rule_text(rule: str) -> str:
    """The line of a rule."""
    service = {"B": "blob", "Q": "queue", "T": "table", "F": "file"}[rule[0]]
    lines = rules_text(service).splitlines()
    [line] = [line for line in lines if line.startswith(f"- **{rule}** ")]
    return line


def test_every_header_and_parameter_that_is_refused_is_on_the_page() -> None:
    page = compatibility.page().lower()
    names = {*unserved._ASKED_IN_HEADERS, *("?" + name for name in unserved._ASKED_IN_QUERY)}
    assert names
    assert [name for name in sorted(names) if f"`{name}" not in page] == []


def test_a_header_is_refused_if_the_service_refuses_it() -> None:
    assert compatibility.is_refused(BLOBS, "x-ms-encryption-key")
    assert compatibility.is_refused(BLOBS, "?showonly")
    assert not compatibility.is_refused(BLOBS, "x-ms-tags")
    assert not compatibility.is_refused(BLOBS, "?prefix")


def test_an_operation_without_a_service_function_is_not_served() -> None:
    found = entry(BLOBS, "Query Blob Contents")
    assert (found.status, found.missing) == (NO, ())


def test_an_operation_that_refuses_a_header_is_served_in_part() -> None:
    found = entry(BLOBS, "Put Blob")
    taken = {one.name: (one.status, one.missing) for one in found.taken}
    assert taken["x-ms-encryption-key"] == (NO, REFUSED)
    assert taken["x-ms-encryption-algorithm"] == (NO, REFUSED)
    assert taken["If-Match"] == taken["x-ms-lease-id"] == (YES, "")
    assert found.status == PARTLY
    assert any(text.endswith(f": {REFUSED}") for text in found.missing)


def asked(name: str, otherwise: str) -> compatibility.Taken:
    operation = next(one for one in BLOBS.routes.operations if one.id == "blob_download")
    others = {"x-ms-other": "B-GET-01"}
    return compatibility._asked(BLOBS, operation, name, {name: otherwise, **others})


def test_what_a_field_reads_is_served() -> None:
    assert asked("x-ms-range", "-").status == YES


def test_what_neither_a_field_nor_the_service_knows_needs_a_word_in_further_md() -> None:
    with pytest.raises(ValueError, match=r"x-ms-new of blob_download .* further\.md"):
        asked("x-ms-new", "-")
    assert asked("x-ms-new", "B-GET-01").status == YES
    assert asked("x-ms-new", NO_EFFECT).missing == NO_EFFECT
    assert asked("x-ms-new", "as x-ms-encryption-key").missing == REFUSED
    assert asked("x-ms-new", "as x-ms-other") == compatibility.Taken("x-ms-new", YES)


def test_an_operation_that_serves_all_it_takes_is_served() -> None:
    assert entry(BLOBS, "Delete Container").status == YES
