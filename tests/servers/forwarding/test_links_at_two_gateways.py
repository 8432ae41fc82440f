"""Links, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_links
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_links))
