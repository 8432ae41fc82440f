"""Shares themselves, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_shares
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_shares))
