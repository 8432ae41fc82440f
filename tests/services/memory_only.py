"""The tests of the services that hold for the engine in memory only, each with its reason.

They are left out where PostgreSQL keeps the stores (service_engine.py). Must not live here: tests
that run over one gateway only (two_gateways.py), or how a test is left out (conftest.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

Tests = Mapping[str, tuple[str, ...]]
"""The names of tests, by their modules; with a parameter if the others of the test hold."""

_TURNS: Final[Tests] = {
    "test_gates": ("test_a_list_is_not_overtaken_for_ever_from_another_gateway[1000000000-True]",),
    "test_long_reads": ("test_one_long_read_ends_in_a_turn",),
}

_HELD_UP: Final[Tests] = {
    "test_idle_shares": (
        "test_a_share_is_given_up_to_another_gateway_when_its_requests_have_ended",
        "test_a_share_that_could_not_be_given_up_is_not_paused_again_soon",
    ),
}

_PARTS: Final[Tests] = {
    "test_containers": ("test_cut_off_inside_the_deletion_the_container_is_whole",),
    "test_file_renames": (
        "test_cut_off_inside_a_rename_one_name_leads_to_the_file[2]",
        "test_cut_off_inside_a_rename_one_name_leads_to_the_file[3]",
    ),
    "test_files": (
        "test_cut_off_inside_a_creation_no_name_leads_to_nothing[2]",
        "test_cut_off_inside_a_deletion_a_job_removes_what_is_left[2]",
    ),
    "test_find_blobs": ("test_the_index_without_its_job_would_keep_what_a_crash_left",),
}

_ENGINE: Final[Tests] = {
    "test_gates": ("test_a_list_that_is_cut_off_while_it_closes_the_gate_leaves_none",),
    "test_page_sweeping": ("test_a_read_that_begins_when_a_write_is_cut_off_waits_for_its_commit",),
    "test_alternating": ("test_what_runs_over_one_gateway_only_is_there",),
    "test_bodies": ("test_a_body_that_is_in_one_part_by_now_is_closed",),
    "test_two_gateways": (
        "test_a_put_held_back_over_deletion_and_sweep_leaves_nothing[Unchecked]",
        "test_an_insert_held_back_over_deletion_and_sweep_leaves_nothing[Unchecked]",
        "test_a_message_held_back_over_clearing_and_sweep_leaves_nothing[Unchecked]",
    ),
}

MEMORY_ONLY: Final[Mapping[str, Tests]] = {
    "It counts the turns of the loop, of which an answer of the database ends some.": _TURNS,
    "It holds up two commits. In PostgreSQL the later one waits for the first one.": _HELD_UP,
    "A commit keeps a part of its steps when it is cut. PostgreSQL keeps all, or none.": _PARTS,
    "It changes the engine in memory, or is about runs in memory.": _ENGINE,
}
"""By the reason."""


def is_memory_only(module: str, *names: str) -> bool:
    """Whether a test is one of these.

    Arguments:
        module: the name of the test's module, without its package.
        names: of the test, with its parameters and without.
    """
    left_out = [name for tests in MEMORY_ONLY.values() for name in tests.get(module, ())]
    return any(name in left_out for name in names)


def memory_only() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the tests by their modules."""
    for tests in MEMORY_ONLY.values():
        yield from tests.items()
