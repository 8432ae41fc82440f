"""Requests and their strings to sign, for the console's signer in the browser.

    python -m tests.auth.console_vectors     writes console/tests/vectors.json anew

Lives here: the cases. The strings and signatures come from the server's own functions, so that the
page's signer is tested against the code that will verify it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.auth.canonical import Scheme, StringsToSign
from strongroom.auth.request import Service
from strongroom.wire.core.http import Headers, Request
from tests.auth.signing import NoBody

FILE = Path(__file__).resolve().parents[2] / "console" / "tests" / "vectors.json"
ORIGIN = "http://127.0.0.1:10010"
_DATE = ("x-ms-date", "Fri, 26 Jun 2026 23:39:12 GMT")
_VERSION = ("x-ms-version", "2025-11-05")

Fields = Sequence[tuple[str, str]]
# Service, method, target as the browser sends it, further headers, length of the body.
CASES: Sequence[tuple[Service, str, str, Fields, int]] = (
    (Service.BLOB, "GET", "/blob/devstoreaccount1?comp=list", (), 0),
    (
        Service.BLOB,
        "GET",
        "/blob/devstoreaccount1/c?restype=container&comp=list&prefix=a%20b%2Fc",
        (),
        0,
    ),
    (
        Service.BLOB,
        "PUT",
        "/blob/devstoreaccount1/c/a%2F..%2Fb",
        (("x-ms-blob-type", "BlockBlob"), ("content-type", "text/plain")),
        5,
    ),
    (Service.BLOB, "PUT", "/blob/devstoreaccount1/c/empty", (("x-ms-blob-type", "BlockBlob"),), 0),
    (
        Service.BLOB,
        "PUT",
        "/blob/devstoreaccount1/c/m?comp=metadata",
        (("x-ms-meta-b", "  two  "), ("x-ms-meta-a", ""), ("if-match", '"0x1"')),
        0,
    ),
    (
        Service.BLOB,
        "GET",
        "/blob/devstoreaccount1/c/%C3%A9?snapshot=2026-01-01T00%3A00%3A00.0000000Z",
        (("range", "bytes=0-1"),),
        0,
    ),
    (
        Service.BLOB,
        "GET",
        "/blob/devstoreaccount1/?comp=blobs&where=%22it%27s%22%20%3D%20%27x%27",
        (),
        0,
    ),
    (
        Service.BLOB,
        "GET",
        "/.strongroom/console/v1/requests?after=7&wait_s=20&filter=a%2Bb%20%C3%A9&limit=500",
        (),
        0,
    ),
    (Service.BLOB, "GET", "/blob/devstoreaccount1/c?include=tags&include=copy&B=2&a=1", (), 0),
    (
        Service.QUEUE,
        "POST",
        "/queue/devstoreaccount1/q/messages?messagettl=-1",
        (("content-type", "application/xml"),),
        61,
    ),
    (
        Service.FILE,
        "PUT",
        "/file/devstoreaccount1/s/f?comp=range",
        (("x-ms-write", "update"), ("content-md5", "AAAA"), ("x-ms-range", "bytes=0-9")),
        10,
    ),
    (
        Service.TABLE,
        "GET",
        "/table/devstoreaccount1/Tables?%24top=1",
        (("accept", "application/json"),),
        0,
    ),
    (
        Service.TABLE,
        "GET",
        "/table/devstoreaccount1/t(PartitionKey='a',RowKey='it%27%27s')?%24filter=a%20eq%20%27x%27",
        (),
        0,
    ),
    (
        Service.TABLE,
        "PUT",
        "/table/devstoreaccount1/t?comp=acl",
        (("content-type", "application/xml"),),
        9,
    ),
)


def vector(
    service: Service, method: str, target: str, fields: Fields, length: int
) -> dict[str, Any]:
    """Return one case with the server's string to sign and its signature."""
    sent = [*fields, _DATE, _VERSION]
    received = [(name, value.strip()) for name, value in sent]
    if method != "GET":
        received.append(("content-length", str(length)))
    parts = Request(method, target, Headers(received), NoBody())
    text = StringsToSign(Scheme.SHARED_KEY, service, parts, DEVELOPMENT_ACCOUNT_NAME).of()
    digest = hmac.new(base64.b64decode(DEVELOPMENT_ACCOUNT_KEY), text, hashlib.sha256).digest()
    return {
        "scheme": "table" if service is Service.TABLE else "full",
        "method": method,
        "url": f"{ORIGIN}{target}",
        "headers": dict(sent),
        "content_length": length,
        "string_to_sign": text.decode("latin-1"),
        "signature": base64.b64encode(digest).decode(),
    }


def content() -> str:
    """Return the file's content."""
    made = {
        "account": DEVELOPMENT_ACCOUNT_NAME,
        "key": DEVELOPMENT_ACCOUNT_KEY,
        "vectors": [vector(*case) for case in CASES],
    }
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(content(), encoding="utf-8")
