"""The files that one Put Blob uses: those whose functions run while it is served.

    python -m tests.tidy.put_path     lists them

Lives here: the files of several runs. Must not live here: the permitted number (ratchets.toml), the
trace of one request (tests/trace). The server runs in this process on a data directory. Only files
that run in each of a few requests are counted. So concurrent background work does not count.
"""

from __future__ import annotations

import sys
import tempfile
import time

from azure.storage.blob import BlobServiceClient

from strongroom.testing.server import InProcessServer
from tests.trace.recording import Recorder

RATCHET = "files_passed_through"
NAME = "Put Blob of 1 KiB"
_PUTS = 25
_AFTER_S = 0.02


def files_of_a_put() -> list[str]:
    """The paths of the files, in order."""
    recorder = Recorder()
    with recorder.installed(), tempfile.TemporaryDirectory() as folder, _served(folder) as server:
        runs = _runs(recorder, server)
    return sorted(set.intersection(*runs))


def _served(folder: str) -> InProcessServer:
    return InProcessServer.start(data=folder, test_clock=False)


def _runs(recorder: Recorder, server: InProcessServer) -> list[set[str]]:
    """Return the files that ran, for each of a few requests on a kept connection."""
    client = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
    container = client.create_container("traced")
    container.upload_blob("first", b"x" * 1024)
    runs = []
    for number in range(_PUTS):
        recorder.begin()
        container.upload_blob(f"blob{number}", b"x" * 1024)
        # The server counts the request after it has answered, which belongs to the path as well.
        time.sleep(_AFTER_S)
        recorder.is_on = False
        runs.append(recorder.files())
    return runs


def main() -> None:
    """Print the files and their number."""
    files = files_of_a_put()
    sys.stdout.write("\n".join([*files, f"{len(files)} files", ""]))


if __name__ == "__main__":
    main()
