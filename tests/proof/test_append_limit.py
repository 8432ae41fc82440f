"""An append blob of 50,000 blocks on the embedded engine: the limit is reached, and not
exceeded."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.limits import COMMITTED_BLOCKS_MAX
from strongroom.store.integrity import Integrity
from strongroom.testing import InProcessServer
from tests.conformance.appending import append, appended, count, create
from tests.conformance.client import Client, Credential

THREADS = 8


def test_50_000_blocks_and_no_more(tmp_path: Path) -> None:
    """B-APP-03 B-APP-07: offsets follow one another, ranges are right, copies and deletion work."""
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        service = BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)
        box = service.create_container("box")
        blob = box.get_blob_client("log")
        credential = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
        client = Client(server.port, credential)
        target = "/box/log"
        create(client, target)

        def fill(number: int) -> list[tuple[int, int, bytes]]:
            rng, one, found = random.Random(number), client.another(), []
            for _ in range(COMMITTED_BLOCKS_MAX // THREADS):
                part = rng.randbytes(rng.randint(1, 40))
                found.append((*appended(one, target, part), part))
            one.close()
            return found

        with ThreadPoolExecutor(THREADS) as threads:
            answers = [one for found in threads.map(fill, range(THREADS)) for one in found]
        answers.sort(key=lambda one: one[1])
        assert [blocks for _, blocks, _ in answers] == list(range(1, COMMITTED_BLOCKS_MAX + 1))
        whole = b"".join(part for _, _, part in answers)
        ends = 0
        for offset, _, part in answers:
            assert offset == ends
            ends += len(part)
        refused = append(client, target, b"x")
        assert (refused.status, refused.code) == (409, "BlockCountExceedsLimit")
        assert blob.download_blob().readall() == whole
        rng = random.Random(0)
        for _ in range(200):
            first = rng.randrange(len(whole))
            length = rng.choice((1, 100, 100_000))
            part = whole[first : first + length]
            assert blob.download_blob(offset=first, length=length).readall() == part
        copy = box.get_blob_client("copy")
        copy.start_copy_from_url(blob.url)
        assert count(client, "/box/copy") == COMMITTED_BLOCKS_MAX
        assert copy.download_blob().readall() == whole
        with pytest.raises(HttpResponseError):
            copy.append_block(b"x")
        blob.delete_blob()
    with Inspection(data) as inspection:
        assert [*inspection.findings(), *Integrity(inspection).findings()] == []
