"""The sample blobs of a setup: the files of a folder, each uploaded once.

Lives here: the upload and the comparison. Must not live here: the walk through the folder
(files.py). A blob that exists is never written: each upload says If-None-Match: *, so that the
server refuses it otherwise.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from strongroom.auth.request import Service
from strongroom.errors.core import StorageError
from strongroom.semantics.core import names
from strongroom.setup.document import AccountSetup
from strongroom.setup.files import FileBody, Sample, content_type, samples
from strongroom.setup.report import SetupReport
from strongroom.setup.requests import Answer, Asked, OwnRequests


class BlobsSetup:
    """Uploads the sample blobs of one account. The file's paths are seen from `folder`."""

    def __init__(self, requests: OwnRequests, report: SetupReport, folder: Path) -> None:
        self._requests = requests
        self._report = report
        self._folder = folder

    async def make_all(self, account: AccountSetup) -> None:
        """Upload each sample whose blob is missing. Raises: SetupError."""
        for container in account.containers:
            if container.folder is None:
                continue
            for sample in await asyncio.to_thread(_listed, self._folder / container.folder):
                what = f"blob {account.name}/{container.name}/{sample.name}"
                if sample.path is None:
                    self._report.skipped(f"{what}: it is a link out of the folder, or no file")
                    continue
                if not _can_be_named(sample.name, container.name):
                    self._report.skipped(f"{what}: no blob can have this name")
                    continue
                target = f"/{quote(container.name)}/{quote(sample.name)}"
                await self._make(account.name, target, what, sample.path)

    async def _make(self, account: str, target: str, what: str, path: Path) -> None:
        head = Asked(Service.BLOB, account, "HEAD", target)
        answer = await self._requests.look(head)
        if answer is None and await self._upload(account, target, path):
            self._report.created(what)
            return
        self._report.left(what)
        answer = answer or await self._requests.look(head)
        if answer is not None and not await _is_same(path, answer):
            self._report.differs(f"{what}: the file has other bytes", may_be_set=False)

    async def _upload(self, account: str, target: str, path: Path) -> bool:
        with closing(FileBody(path)) as body:
            fields = (
                ("x-ms-blob-type", "BlockBlob"),
                ("Content-Type", content_type(path.name)),
                ("If-None-Match", "*"),
            )
            request = Asked(Service.BLOB, account, "PUT", target, fields, body)
            return await self._requests.do(request, unless="BlobAlreadyExists")


def _can_be_named(name: str, container: str) -> bool:
    try:
        names.check_blob(name, container)
    except StorageError:
        return False
    return True


def _listed(folder: Path) -> list[Sample]:
    return list(samples(folder))


async def _is_same(path: Path, answer: Answer) -> bool:
    """Return whether a blob has the bytes of a file, as far as its length and its MD5 show."""
    with closing(FileBody(path)) as body:
        if answer.size_bytes != body.size_bytes:
            return False
        md5 = answer.headers.get("content-md5")
        if md5 is None:
            return True
        digest = hashlib.md5(usedforsecurity=False)
        async for piece in body:
            digest.update(piece)
    return md5 == base64.b64encode(digest.digest()).decode()
