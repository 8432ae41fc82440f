"""The tests of the services that run over two gateways too (alternating.py).

In `make test` they are those of one module for each service; in `make proof` they are all but the
ones named here, with the reason. Must not live here: how such a test runs (conftest.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.effort import stride
from tests.over_postgres import has_two_gateways, keeps_in_postgres

SHORT: Final = ("test_appends", "test_entities", "test_queues")
"""The modules of which `make test` runs every test over two gateways as well."""

OWN: Final = (
    "test_busy_sources",
    "test_gates",
    "test_gateway_races",
    "test_gateway_counts",
    "test_gateway_histories",
    "test_idle_shares",
    "test_ledgers",
    "test_lost_looks",
    "test_readers_elsewhere",
    "test_share_holds",
    "test_sharing_jobs",
    "test_turns",
    "test_two_gateways",
    "test_uploads",
)
"""Modules that make several gateways themselves."""

HELD: Final = (
    "test_deleted_shares",
    "test_durable_handles",
    "test_durable_histories",
    "test_durable_races",
    "test_file_copies",
    "test_file_damage",
    "test_file_renames",
    "test_files",
    "test_handle_bounds",
    "test_handle_breaks",
    "test_handle_closing",
    "test_handle_histories",
    "test_handle_listing",
    "test_handle_locks",
    "test_handle_names",
    "test_handle_opens",
    "test_handle_rest",
    "test_handle_watches",
    "test_interrupted_changes",
    "test_interrupted_names",
    "test_long_reads",
    "test_node_access",
    "test_open_nodes",
    "test_paths",
    "test_pending_file_copies",
    "test_repeated_creates",
    "test_reset",
    "test_share_snapshot_crashes",
    "test_share_snapshot_looks",
    "test_share_snapshot_sequences",
    "test_share_snapshots",
    "test_share_usage",
    "test_sweeping_woken",
)
"""Modules about shares. One gateway at a time serves a share, and its handles end with it."""

# The test replaces, delays or interrupts a part of one gateway's engine, and the call must go to
# that gateway.
_ENGINE: Final = {
    # Each gateway writes the reads that it noted itself.
    "test_accesses": ("test_a_write_is_an_access_and_a_read_once_a_day",),
    "test_appends": (
        "test_a_block_that_is_missing_is_an_error_also_while_the_blob_grows",
        "test_an_append_whose_outcome_is_unknown_happened_whole_or_not_at_all",
        "test_another_gateway_sweeps_nothing_that_a_stalled_download_has_still_to_read",
    ),
    "test_blocks": ("test_a_list_of_what_was_replaced_meanwhile_is_refused",),
    "test_containers": ("test_cut_off_inside_the_deletion_the_container_is_whole",),
    "test_copies_awaited": ("test_a_store_that_cannot_be_read_while_it_waits",),
    "test_deleted_containers": ("test_a_deletion_that_is_cut_off",),
    "test_find_blobs": (
        "test_a_container_that_is_deleted_during_a_search_is_not_found",
        "test_a_search_looks_at_the_blobs_of_the_rarest_tag",
        "test_tags_that_change_between_the_index_and_the_blob",
        "test_the_index_without_its_job_would_keep_what_a_crash_left",
    ),
    "test_from_url": ("test_a_destination_that_changes_while_the_source_is_read",),
    "test_handing_over": (
        "test_a_copy_that_was_not_committed_leaves_no_source",
        "test_a_job_that_is_seen_first_finds_the_source",
    ),
    "test_blob_retention": ("test_a_commit_that_is_cut_off",),
    "test_page_sweeping": ("test_a_read_that_begins_when_a_write_is_cut_off_waits_for_its_commit",),
    "test_list_versions": ("test_a_listing_without_versions_reads_none",),
    "test_pages_from_url": ("test_pages_of_the_blob_itself_are_those_of_one_state",),
    "test_queues": ("test_a_commit_that_is_cut_leaves_the_old_or_the_new",),
    "test_rereading": ("test_a_container_that_is_swept_meanwhile_is_not_found",),
    "test_staging_again": (
        "test_a_block_staged_while_its_list_is_made_is_in_the_blob_or_still_staged",
        "test_a_long_list_shows_what_was_staged_at_one_moment",
        "test_a_refused_list_is_judged_with_what_was_staged_meanwhile",
        "test_a_short_list_holds_nobody_up",
    ),
    "test_sweeping": (
        "test_a_body_that_is_replaced_while_the_blob_is_swept_is_not_forgotten",
        "test_a_snapshot_that_is_taken_while_the_blob_is_swept_keeps_its_content",
    ),
    "test_sweeping_looks": (
        "test_a_body_that_is_replaced_between_two_looks_of_a_sweep_stays_for_its_readers",
    ),
    "test_sweeping_sequences": ("test_a_commit_that_is_cut_off_leaves_nothing_that_is_not_swept",),
    "test_version_sequences": ("test_a_commit_that_is_cut_off_loses_no_version",),
}

# Promises and counts that hold for each gateway by itself.
_EACH: Final = {
    # Each gateway ends its waiters when it stops.
    "test_leasing": ("test_a_server_that_stops_sends_waiters_home",),
    # The waiters of one gateway are counted.
    "test_copies_awaited": (
        "test_its_success",
        "test_its_abortion",
        "test_its_failure",
        "test_a_server_that_stops_answers_as_it_is",
        "test_a_client_that_has_gone_is_not_waited_for",
        "test_a_clock_that_is_moved_ends_no_wait",
        "test_a_blob_that_is_another_by_now_is_answered_as_begun",
    ),
    # Each sweeper counts its own jobs.
    "test_job_facts": ("test_a_job_that_fails_is_seen_until_it_is_done",),
    # The test makes its own gateways.
    "test_handing_over": ("test_a_source_is_given_up_when_another_gateway_has_copied_the_blob",),
    # One gateway serves the share.
    "test_long_listings": (
        "test_a_listing_of_a_directory_over_smb_pauses",
        "test_a_listing_of_a_snapshot_pauses",
    ),
    "test_pure_decisions": ("test_every_kind_of_decision_decides_the_same_when_it_runs_again",),
    # A single gateway drops data without readers at once; it knows its readers one by one.
    "test_page_sweeping": ("test_overwritten_cleared_and_truncated_pages_come_back",),
    "test_sweeping": ("test_jobs_that_wait_for_readers_do_not_hold_up_others",),
}


def left_out() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the tests that run over one gateway only, by their modules."""
    yield from _ENGINE.items()
    yield from _EACH.items()


def counts(module: str, function: str) -> list[int]:
    """Return over how many gateways a test runs: each number is a run of its own.

    Arguments:
        module: the name of the test's module, without its package.
    """
    if module in (*OWN, *HELD) or function in (*_ENGINE.get(module, ()), *_EACH.get(module, ())):
        return [1]
    if keeps_in_postgres():
        return [2 if has_two_gateways() else 1]
    if stride() == 1:
        # The run over one gateway is in `make test`.
        return [2]
    return [1, 2] if module in SHORT else [1]
