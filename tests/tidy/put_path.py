"""The files that one Put Blob uses: those whose functions run while it is served.

    python -m tests.tidy.put_path     lists them

Lives here: the trace. Must not live here: the permitted number (ratchets.toml). The server runs in
this process on a data directory. Only files that run in each of a few requests are counted. So
concurrent background work does not count.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from functools import reduce
from pathlib import PurePosixPath
from types import FrameType

from azure.storage.blob import BlobServiceClient

from strongroom.testing.server import InProcessServer
from tests.tidy.sources import PACKAGE, ROOT

RATCHET = "files_passed_through"
NAME = "Put Blob of 1 KiB"
_PUTS = 25
_AFTER_S = 0.02
# The client's half of the process, and the observers of this trace.
_NOT_SERVED = PACKAGE / "testing"


class Trace:
    """Records the files of the package whose functions are called in threads started from now
    on."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_on = False

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; `threading.setprofile` calls this."""
        if self.is_on and event == "call":
            self.files.add(frame.f_code.co_filename)


def files_of_a_put() -> list[str]:
    """The paths of the files, in order."""
    trace = Trace()
    threading.setprofile(trace.note)
    try:
        with tempfile.TemporaryDirectory() as folder, _served(folder) as server:
            runs = _runs(trace, server)
    finally:
        threading.setprofile(None)
    ran = [PurePosixPath(path) for path in reduce(set.intersection, runs)]
    root = PurePosixPath(ROOT.as_posix())
    own = [path.relative_to(root) for path in ran if path.is_relative_to(root / PACKAGE)]
    return sorted(str(path) for path in own if not path.is_relative_to(_NOT_SERVED))


def _served(folder: str) -> InProcessServer:
    return InProcessServer.start(data=folder, test_clock=False)


def _runs(trace: Trace, server: InProcessServer) -> list[set[str]]:
    """Return the files that ran, for each of a few requests on a kept connection."""
    client = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
    container = client.create_container("traced")
    container.upload_blob("first", b"x" * 1024)
    runs = []
    for number in range(_PUTS):
        trace.files, trace.is_on = set(), True
        container.upload_blob(f"blob{number}", b"x" * 1024)
        # The server counts the request after it has answered, which belongs to the path as well.
        time.sleep(_AFTER_S)
        trace.is_on = False
        runs.append(trace.files)
    return runs


def main() -> None:
    """Print the files and their number."""
    files = files_of_a_put()
    sys.stdout.write("\n".join([*files, f"{len(files)} files", ""]))


if __name__ == "__main__":
    main()
