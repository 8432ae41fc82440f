"""Copies of files, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_copy_file
from tests.servers.forwarding.borrowed import borrowed

_OTHER_SERVERS = (
    "test_a_pending_copy_refuses_writes_and_shows_its_progress",
    "test_a_source_elsewhere",
    "test_the_sdk_copies_and_aborts",
)
globals().update(borrowed(test_copy_file, without=_OTHER_SERVERS))
