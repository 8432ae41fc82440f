"""Requests on directories and files, over two gateways in turn."""

from __future__ import annotations

from tests.conformance.file import test_file_requests
from tests.servers.forwarding.borrowed import borrowed

globals().update(borrowed(test_file_requests, without=("test_files_on_each_engine",)))
