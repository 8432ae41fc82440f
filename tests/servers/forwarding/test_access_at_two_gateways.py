"""What a token permits on files, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_file_access
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_file_access))
