"""Ranges from a URL, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_range_from_url
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_range_from_url, without=("test_a_range_comes_from_another_server",)))
