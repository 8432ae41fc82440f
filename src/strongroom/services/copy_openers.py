"""The function that opens a copy source, for each service: blobs copied to files, files to blobs.

Source: "Copy Blob" and "Copy File", header x-ms-copy-source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom.auth.request import Service
from strongroom.services.blob.copies import reading as blobs
from strongroom.services.core.copies.sources import OpenLocal
from strongroom.services.file.copies import reading as files

OPENERS: Final[Mapping[Service, OpenLocal]] = {
    opener.service: opener.open for opener in (blobs.OWN, files.OWN)
}
