"""The gate of smbtorture: the parser of its output, and the list files from which the gate
follows."""

from __future__ import annotations

import pytest

from tests.smbtorture import gate, names, page
from tests.smbtorture.__main__ import lists
from tests.smbtorture.outcomes import (
    Outcome,
    Result,
    read_results,
    read_verdict,
    write_results,
)

OPENING = """\
smbtorture 4.17.12-Debian
Using seed 1
time: 2026-01-02 03:04:05.000000
test: cancel
"""


def result(name: str, outcome: Outcome, text: str = "") -> Result:
    return Result(name, outcome, 0.5, text)


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        ("success: cancel\n", (Outcome.PASSED, "")),
        ("success: Testing naked diacritical (umlaut)\n", (Outcome.PASSED, "")),
        ("failure: cancel [\na.c:1: one\ntwo [3]\n]\n", (Outcome.FAILED, "a.c:1: one\ntwo [3]")),
        ("error: cancel [\nbroken\n]\n", (Outcome.FAILED, "broken")),
        ("skip: cancel [\nno channels\n]\n", (Outcome.SKIPPED, "no channels")),
        ("skip: cancel\n", (Outcome.SKIPPED, "")),
        (
            "WARNING!: no break came\nfailure: cancel [\na.c:1\n]\n",
            (Outcome.FAILED, "a.c:1\nno break came"),
        ),
        ("success: one\nfailure: two [\nb.c:2\n]\n", (Outcome.FAILED, "b.c:2")),
    ],
    ids=[
        *("passed", "name with brackets", "failed", "error", "skipped", "without text"),
        *("with a warning", "two tests"),
    ],
)
def test_a_verdict_is_read_with_its_text(ending: str, verdict: tuple[Outcome, str]) -> None:
    assert read_verdict(OPENING + ending) == verdict


def test_output_without_a_verdict_is_a_lost_test() -> None:
    outcome, text = read_verdict(f"{OPENING}a success: of no line\nPANIC")
    assert outcome is Outcome.LOST
    assert text.endswith("PANIC")


def test_results_are_read_as_they_were_written() -> None:
    results = [
        result("smb2.lock.cancel", Outcome.PASSED),
        result("smb2.charset.Testing wide-a", Outcome.LATE, "one\ntwo ä"),
    ]
    assert read_results(write_results(results)) == results


def test_a_listing_gives_the_names_of_the_suites_that_count() -> None:
    listing = "\n".join(
        [
            "smbtorture 4.17.12-Debian",
            "base.lock.lock.lock",
            "smb2.ioctl.req_resume_key.req_resume_key",
            "smb2.ioctl.sparse_qar.sparse_qar",
            "smb2.streams.dir.dir",
            "smb2.connect",
            "smb2.charset.Testing wide-a.Testing wide-a",
            "smb2.lock.lock.lock",
        ]
    )
    assert names.counted(listing) == [
        "smb2.lock.lock",
        "smb2.connect",
        "smb2.charset.Testing wide-a",
        "smb2.ioctl.req_resume_key",
    ]


def test_a_list_is_read_as_it_was_written() -> None:
    notes = {"smb2.lock.lock": "why", "smb2.charset.Testing wide-a": ""}
    written = names.write_list(["How it was made.", ""], notes)
    assert written.startswith("# How it was made.\n#\nsmb2.lock.lock # why\n")
    assert names.read_list(written) == notes
    with pytest.raises(ValueError, match="twice"):
        names.read_list("a\nb\na # again\n")


def test_the_gate_is_what_smbd_passes_each_time_and_what_is_wanted() -> None:
    runs = [
        [result("a", Outcome.PASSED), result("b", Outcome.PASSED), result("c", Outcome.FAILED)],
        [result("a", Outcome.PASSED), result("b", Outcome.LATE), result("c", Outcome.FAILED)],
        [result("a", Outcome.PASSED), result("b", Outcome.PASSED), result("c", Outcome.SKIPPED)],
    ]
    smbd = gate.outcomes_of(runs)
    assert smbd == {
        "a": "passed passed passed",
        "b": "passed late passed",
        "c": "failed failed skipped",
    }
    assert gate.made(smbd, ["c"], ["b"]) == ["a", "c"]
    assert gate.made(smbd, [], ["a", "b", "c"]) == []
    with pytest.raises(ValueError, match="neither"):
        gate.made(smbd, ["c"], [])
    with pytest.raises(ValueError, match="not among"):
        gate.made(smbd, ["c"], ["b", "d"])


def test_two_runs_are_not_enough() -> None:
    assert not gate.passes_each_time("passed passed")
    assert not gate.passes_each_time("passed passed failed passed")
    assert gate.passes_each_time("passed passed passed")


def test_a_new_failure_and_a_miss_that_passes_are_both_wrong() -> None:
    results = [
        result("good", Outcome.PASSED),
        result("known", Outcome.FAILED, "as ever"),
        result("new", Outcome.SKIPPED, "reason"),
        result("mended", Outcome.PASSED),
    ]
    assert gate.complaints(results, ["known", "mended"]) == [
        "new: skipped: reason",
        "mended passes now: take it out of misses.txt",
    ]


def test_some_tests_of_the_gate_are_run_with_signed_sessions_only() -> None:
    assert gate.to_run(["a", "b"], ["b"], encrypted=False) == ["a", "b"]
    assert gate.to_run(["a", "b"], ["b"], encrypted=True) == ["a"]


def test_the_gate_in_the_repository_follows_from_its_sources() -> None:
    found = lists()
    assert list(found.gate) == gate.made(found.smbd, found.wanted, found.excluded)
    assert {names.suite_of(name) for name in found.smbd} == set(names.SUITES)


def test_each_exception_has_its_reason() -> None:
    found = lists()
    for notes in (found.wanted, found.excluded, found.signed, found.misses):
        assert all(notes.values()), [name for name, reason in notes.items() if not reason]
    assert not set(found.wanted) & set(found.excluded)


def test_known_misses_are_of_the_gate_and_the_subset_has_none() -> None:
    found = lists()
    assert set(found.misses) | set(found.signed) <= set(found.gate)
    assert set(found.subset) <= set(found.gate) - set(found.misses)


def test_the_page_follows_from_the_lists() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.text(lists()), "run: python -m tests.smbtorture page"


def test_a_page_counts_each_suite_and_names_reasons_once() -> None:
    passed = "passed passed passed"
    smbd = {"smb2.lock.a": passed, "smb2.lock.b": "failed failed failed", "smb2.lock.c": passed}
    made = page.text(
        page.Lists(
            smbd={**smbd, "smb2.connect": passed, "smb2.dir.x": "failed failed failed"},
            gate=dict.fromkeys([*smbd, "smb2.connect"], ""),
            wanted={"smb2.lock.b": "Windows differs."},
            excluded={"smb2.dir.x": "Needs streams."},
            signed={"smb2.connect": "Ends its session."},
            misses={"smb2.lock.c": "Not served.", "smb2.connect": "Not served."},
            subset={"smb2.lock.a": ""},
        )
    )
    rows = [
        "| `smb2.lock` | 3 | 2 | 2 |",
        "| `smb2.connect` | 1 | 1 | 0 |",
        "| **all** | 4 | 3 | 2 |",
        "| lock: `c`<br>`connect` | Not served. |",
        "| lock: `b` | Windows differs. |",
        "| dir: `x` | Needs streams. |",
        "| `connect` | Ends its session. |",
    ]
    lines = made.splitlines()
    assert all(row in lines for row in rows), made
    assert not any(line.startswith("| `smb2.dir`") for line in lines)
