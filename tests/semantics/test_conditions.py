"""Conditional requests as truth tables: reads, writes, containers, copy sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.core import conditions as law
from strongroom.semantics.core.conditions import ANY, Conditions, ContainerConditions
from strongroom.values import TICKS_PER_S, etag_text
from tests.refusals import outcome

STAMP = 0x8D8499394C82CF9
MODIFIED = 638_000_000_000_000_000 + 7  # some ticks into its second
SECOND = MODIFIED // TICKS_PER_S * TICKS_PER_S
SAME = (etag_text(STAMP),)
OTHER = ('"0x1"',)
BOTH = (*OTHER, *SAME)
BEFORE, AT, AFTER = SECOND - TICKS_PER_S, SECOND, SECOND + TICKS_PER_S
NEW, OLD, OLDEST = "2021-12-02", "2015-12-11", "2012-02-12"

IS_304, IS_412 = "304 ConditionNotMet", "412 ConditionNotMet"
MANY = "400 MultipleConditionHeadersNotSupported"
EXISTS = "409 BlobAlreadyExists"


def im(
    etags: tuple[str, ...],
    if_unmodified_since: int | None = None,
    if_modified_since: int | None = None,
) -> Conditions:
    return Conditions(etags, None, if_modified_since, if_unmodified_since)


def inm(
    etags: tuple[str, ...],
    if_modified_since: int | None = None,
    if_unmodified_since: int | None = None,
) -> Conditions:
    return Conditions(None, etags, if_modified_since, if_unmodified_since)


def since(moment: int) -> Conditions:
    return Conditions(if_modified_since=moment)


def until(moment: int) -> Conditions:
    return Conditions(if_unmodified_since=moment)


def since_and_until(first: int, last: int) -> Conditions:
    return Conditions(if_modified_since=first, if_unmodified_since=last)


READS: list[tuple[Conditions, str]] = [
    (law.NONE, "ok"),
    (Conditions(), "ok"),
    (im(SAME), "ok"),
    (im(OTHER), IS_412),
    (im(BOTH), "ok"),
    (im(ANY), "ok"),
    (im(("0x8D8499394C82CF9",)), IS_412),
    (im((f"W/{SAME[0]}",)), IS_412),
    (inm(SAME), IS_304),
    (inm(OTHER), "ok"),
    (inm(BOTH), IS_304),
    (inm(ANY), "400 UnsatisfiableCondition"),
    (since(BEFORE), "ok"),
    (since(AT), IS_304),
    (since(AFTER), IS_304),
    (until(BEFORE), IS_412),
    (until(AT), "ok"),
    (until(AFTER), "ok"),
    # If-Match AND If-Unmodified-Since
    (im(SAME, if_unmodified_since=AT), "ok"),
    (im(SAME, if_unmodified_since=BEFORE), IS_412),
    (im(OTHER, if_unmodified_since=AT), IS_412),
    # If-None-Match OR If-Modified-Since
    (inm(SAME, if_modified_since=BEFORE), "ok"),
    (inm(OTHER, if_modified_since=AT), "ok"),
    (inm(SAME, if_modified_since=AT), IS_304),
    (inm(OTHER, if_modified_since=BEFORE), "ok"),
    # 412 comes before 304
    (Conditions(if_match=OTHER, if_none_match=SAME), IS_412),
    (Conditions(if_match=SAME, if_none_match=SAME), IS_304),
    (Conditions(if_modified_since=AT, if_unmodified_since=BEFORE), IS_412),
    (Conditions(if_modified_since=AT, if_unmodified_since=AT), IS_304),
    (Conditions(SAME, OTHER, BEFORE, AT), "ok"),
]


@pytest.mark.parametrize(("conditions", "expected"), READS)
def test_reads(conditions: Conditions, expected: str) -> None:
    assert outcome(lambda: law.check_read(conditions, STAMP, MODIFIED, NEW)) == expected


OLD_READS: list[tuple[str, Conditions, str]] = [
    (OLD, inm(ANY), "ok"),
    (OLD, inm(ANY, if_modified_since=AT), IS_304),
    (OLDEST, inm(SAME), IS_304),
    (OLDEST, im(OTHER), IS_412),
    (OLDEST, inm(SAME, if_modified_since=BEFORE), IS_304),
    (OLDEST, inm(OTHER, if_modified_since=AT), "ok"),
    (OLDEST, im(SAME, if_unmodified_since=BEFORE), "ok"),
    (OLDEST, Conditions(if_match=SAME, if_none_match=OTHER), MANY),
    (OLDEST, im(BOTH), MANY),
]


@pytest.mark.parametrize(("version", "conditions", "expected"), OLD_READS)
def test_reads_of_older_versions(version: str, conditions: Conditions, expected: str) -> None:
    assert outcome(lambda: law.check_read(conditions, STAMP, MODIFIED, version)) == expected


def test_a_304_carries_the_etag_and_the_time() -> None:
    with pytest.raises(StorageError) as caught:
        law.check_read(inm(SAME), STAMP, MODIFIED, NEW)
    headers = dict(caught.value.headers)
    assert headers["ETag"] == SAME[0]
    assert headers["Last-Modified"].endswith(" GMT")


# The condition, the outcome on an existing blob of an operation that creates, of one that does not,
# and on a missing blob of one that creates.
WRITES: list[tuple[Conditions, str, str, str]] = [
    (law.NONE, "ok", "ok", "ok"),
    (im(SAME), "ok", "ok", IS_412),
    (im(OTHER), IS_412, IS_412, IS_412),
    (im(ANY), "ok", "ok", IS_412),
    (inm(SAME), IS_412, IS_412, "ok"),
    (inm(OTHER), "ok", "ok", "ok"),
    (inm(ANY), EXISTS, "ok", "ok"),
    (since(BEFORE), "ok", "ok", "ok"),
    (since(AT), IS_412, IS_412, "ok"),
    (until(AT), "ok", "ok", "ok"),
    (until(BEFORE), IS_412, IS_412, "ok"),
    # Only the ETag counts.
    (im(SAME, if_unmodified_since=BEFORE), "ok", "ok", IS_412),
    (im(OTHER, if_unmodified_since=AT), IS_412, IS_412, IS_412),
    (inm(OTHER, if_modified_since=AT), "ok", "ok", "ok"),
    (inm(SAME, if_modified_since=BEFORE), IS_412, IS_412, "ok"),
    # Pairs that are not allowed together.
    (im(SAME, if_modified_since=AT), MANY, MANY, MANY),
    (inm(OTHER, if_unmodified_since=AT), MANY, MANY, MANY),
    (Conditions(if_match=SAME, if_none_match=OTHER), MANY, MANY, MANY),
    (Conditions(if_modified_since=AT, if_unmodified_since=AT), MANY, MANY, MANY),
    (im(BOTH), MANY, MANY, MANY),
    (inm(BOTH), MANY, MANY, MANY),
]


def check(
    conditions: Conditions,
    exists: bool,
    etag: int = STAMP,
    modified: int = MODIFIED,
    creates: bool = True,
    tags: Mapping[str, str] = MappingProxyType({}),
    unmet: ErrorCode = errors.CONDITION_NOT_MET,
) -> None:
    """Check the conditions of a write to a blob."""
    refusals = law.WriteRefusals(blob_errors.BLOB_NOT_FOUND, blob_errors.BLOB_ALREADY_EXISTS, unmet)
    law.check_write(conditions, exists, etag, modified, creates, tags, refusals)


@pytest.mark.parametrize(("conditions", "creating", "changing", "missing"), WRITES)
def test_writes(conditions: Conditions, creating: str, changing: str, missing: str) -> None:
    def judge(exists: bool, creates: bool) -> str:
        stamp, modified = (STAMP, MODIFIED) if exists else (0, 0)
        return outcome(lambda: check(conditions, exists, stamp, modified, creates))

    assert judge(exists=True, creates=True) == creating
    assert judge(exists=True, creates=False) == changing
    assert judge(exists=False, creates=True) == missing
    assert judge(exists=False, creates=False) == "404 BlobNotFound"


def test_a_copy_has_its_own_codes() -> None:
    target = blob_errors.TARGET_CONDITION_NOT_MET
    seen = outcome(lambda: check(im(OTHER), True, unmet=target))
    assert seen == "412 TargetConditionNotMet"
    seen = outcome(lambda: check(inm(ANY), True, unmet=target))
    assert seen == EXISTS


SOURCES: list[tuple[Conditions, bool]] = [
    (law.NONE, True),
    (im(SAME), True),
    (im(OTHER), False),
    (inm(SAME), False),
    (inm(OTHER), True),
    (inm(ANY), False),
    (since(BEFORE), True),
    (since(AT), False),
    (until(AT), True),
    (until(BEFORE), False),
    (inm(OTHER, if_modified_since=AT), True),
    (im(SAME, if_unmodified_since=BEFORE), True),
    (Conditions(SAME, if_tags="a = 'b'"), True),
    (Conditions(OTHER, if_tags="a = 'c'"), False),
]


@pytest.mark.parametrize(("conditions", "met"), SOURCES)
def test_sources(conditions: Conditions, met: bool) -> None:
    seen = outcome(lambda: law.check_source(conditions, STAMP, MODIFIED, {"a": "b"}))
    assert seen == ("ok" if met else "412 SourceConditionNotMet")


def test_tags_of_a_copy_have_one_code() -> None:
    """B-CWR-08: the destination's and the source's, unlike the other conditions."""
    unmet, tags = Conditions(if_tags="a = 'c'"), {"a": "b"}
    target = blob_errors.TARGET_CONDITION_NOT_MET
    assert outcome(lambda: law.check_source(unmet, STAMP, MODIFIED, tags)) == IS_412
    seen = outcome(lambda: check(unmet, True, tags=tags, unmet=target))
    assert seen == IS_412


def test_sources_follow_the_pair_rules_of_writes() -> None:
    for pair in (Conditions(SAME, OTHER), im(BOTH), since_and_until(BEFORE, AT)):
        assert outcome(partial(law.check_source, pair, STAMP, MODIFIED)) == MANY


FAILED, UNMODIFIED = "412 CannotVerifyCopySource", "304 CannotVerifyCopySource"


@pytest.mark.parametrize(("conditions", "said"), READS)
def test_a_source_is_judged_as_a_read_of_it(conditions: Conditions, said: str) -> None:
    """B-URL-13: `If-None-Match: *`, which a read refuses, is an unmet condition for any source."""
    words = {"ok": "ok", IS_412: FAILED, IS_304: UNMODIFIED}
    found = outcome(lambda: law.check_read_source(conditions, STAMP, MODIFIED))
    assert found == words.get(said, UNMODIFIED)


@pytest.mark.parametrize(("value", "said"), [("b", "ok"), ("c", FAILED)])
def test_tags_of_a_source_that_is_read(value: str, said: str) -> None:
    """B-URL-13."""
    wanted = Conditions(if_tags=f"a = '{value}'")
    found = outcome(lambda: law.check_read_source(wanted, STAMP, MODIFIED, {"a": "b"}))
    assert found == said


UNSUPPORTED = "400 ConditionHeadersNotSupported"

# Outcomes for operations that accept no conditions, If-Modified-Since only, both dates.
CONTAINERS: list[tuple[Conditions, str, str, str]] = [
    (law.NONE, "ok", "ok", "ok"),
    (im(ANY), UNSUPPORTED, UNSUPPORTED, UNSUPPORTED),
    (inm(OTHER), UNSUPPORTED, UNSUPPORTED, UNSUPPORTED),
    (Conditions(if_tags="a = 'b'"), UNSUPPORTED, UNSUPPORTED, UNSUPPORTED),
    (since(BEFORE), UNSUPPORTED, "ok", "ok"),
    (since(AT), UNSUPPORTED, IS_412, IS_412),
    (until(AT), UNSUPPORTED, UNSUPPORTED, "ok"),
    (until(BEFORE), UNSUPPORTED, UNSUPPORTED, IS_412),
    (Conditions(if_modified_since=AT, if_unmodified_since=AT), UNSUPPORTED, UNSUPPORTED, MANY),
]


@pytest.mark.parametrize(("conditions", "none", "modified_since", "dates"), CONTAINERS)
def test_containers(conditions: Conditions, none: str, modified_since: str, dates: str) -> None:
    expected = {
        ContainerConditions.NONE: none,
        ContainerConditions.MODIFIED_SINCE: modified_since,
        ContainerConditions.DATES: dates,
    }
    for accepted, wanted in expected.items():

        def judge(accepted: ContainerConditions = accepted) -> None:
            law.check_container(conditions, MODIFIED, accepted)

        assert outcome(judge) == wanted


def test_tags_decide_reads_and_writes() -> None:
    conditions = Conditions(if_tags="\"state\" = 'done'")
    for state, expected in (("done", "ok"), ("new", IS_412), (None, IS_412)):
        tags = {} if state is None else {"state": state}

        def read(tags: dict[str, str] = tags) -> None:
            law.check_read(conditions, STAMP, MODIFIED, NEW, tags)

        def write(tags: dict[str, str] = tags) -> None:
            check(conditions, True, tags=tags)

        assert outcome(read) == outcome(write) == expected
    assert outcome(lambda: Conditions(if_tags="state =")) == "400 InvalidHeaderValue"


ETAGS = st.sampled_from([None, ANY, SAME, OTHER, BOTH])
TIMES = st.sampled_from([None, BEFORE, AT, AFTER])


@given(ETAGS, ETAGS, TIMES, TIMES)
def test_reads_follow_the_formula(
    match: tuple[str, ...] | None,
    none_match: tuple[str, ...] | None,
    modified_since: int | None,
    unmodified_since: int | None,
) -> None:
    conditions = Conditions(match, none_match, modified_since, unmodified_since)
    seen = outcome(lambda: law.check_read(conditions, STAMP, MODIFIED, NEW))
    group = []
    if none_match is not None:
        group.append(none_match == OTHER)
    if modified_since is not None:
        group.append(modified_since == BEFORE)
    if none_match == ANY:
        assert seen == "400 UnsatisfiableCondition"
    elif match == OTHER or unmodified_since == BEFORE:
        assert seen == IS_412
    else:
        assert seen == (IS_304 if group and not any(group) else "ok")
