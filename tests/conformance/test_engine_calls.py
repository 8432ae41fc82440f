"""The page of engine calls is up to date, and has every served operation."""

from __future__ import annotations

import pytest

from tests.conformance import engine_calls
from tests.conformance.engine_calls import is_one_statement_a_call


def test_the_page_has_the_counts_of_the_server() -> None:
    written = engine_calls.PAGE.read_text(encoding="utf-8")
    assert written == engine_calls.page(), "run: python -m tests.conformance.engine_calls"


@pytest.mark.parametrize("service", engine_calls.SERVICES)
def test_every_served_operation_is_counted(service: str) -> None:
    counted = {name.removesuffix(engine_calls.REFUSAL) for name in engine_calls.counts()[service]}
    assert counted == set(engine_calls.operations()[service])


@pytest.mark.parametrize("name", ["Get File", "Put Range", "Put Range (clear)"])
def test_the_bytes_of_a_file_take_four_calls_before_the_commit(name: str) -> None:
    assert engine_calls.before_commit(engine_calls.counts()["file"][name]) <= 4


def test_no_path_is_followed_twice_by_an_operation_on_one_file() -> None:
    twice = {"Copy File", "Put Range from URL", "Rename File", "Rename Directory"}
    for name, calls in engine_calls.counts()["file"].items():
        assert calls.count("follow") <= 1 or name in twice, name


@pytest.mark.parametrize("service", engine_calls.SERVICES)
def test_over_postgresql_a_call_is_one_statement_and_the_counts_are_those_of_the_page(
    service: str,
) -> None:
    works = engine_calls.works_over_postgres()[service]
    assert {name: engine_calls.shown(work.calls) for name, work in works.items()} == {
        name: engine_calls.shown(calls) for name, calls in engine_calls.counts()[service].items()
    }
    odd = {name: work for name, work in works.items() if not is_one_statement_a_call(work)}
    if odd:
        # A read of background work may be sent with those of a request. It is not sent each time.
        again = engine_calls.works_over_postgres.__wrapped__()[service]
        odd = {name: work for name, work in odd.items() if not is_one_statement_a_call(again[name])}
    assert not odd
