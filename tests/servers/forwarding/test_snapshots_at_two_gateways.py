"""Snapshots of shares, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_share_snapshots
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_share_snapshots))
