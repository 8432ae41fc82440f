"""One plain request for each row of the operation table, with every required field.

`request_of(row, container, blob)` gives method, target, headers and body. `send_row` sends it by a
token. Source: the tables of
docs/operations/blob.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.conformance.leasing import A, B
from tests.operations.transcript import Row, rows

# Operations decided by the endpoint, or without credentials; they have tests of their own.
ELSEWHERE = {"get_static_website_content", "preflight"}
ROWS = [row for row in rows("blob") if row.id not in ELSEWHERE]
SERVED = [row for row in ROWS if row.served]
# The operations that an account key permits. The others have tests of their own with a bearer
# token.
SERVED_BY_KEY = [row for row in SERVED if row.id != "service_get_user_delegation_key"]
# Refused as by an account without hierarchical namespace, not with 501.
NEEDS_HIERARCHY = [
    row for row in ROWS if row.id in ("blob_set_expiry", "data_lake_get_access_control")
]
NOT_YET = [row for row in ROWS if not (row.served or row in NEEDS_HIERARCHY)]

# A value for each required field without a value in the table.
_VALUES = {
    "?blockid": "QQ==",
    "?copyid": B,
    "?delimiter": "/",
    "?where": "colour='red'",
    "?versionid": "2026-01-02T03:04:05.1234567Z",
    "x-ms-access-tier": "Hot",
    "x-ms-blob-content-length": "512",
    "x-ms-copy-source": "http://127.0.0.1:1/nothing/here",
    "x-ms-deleted-container-name": "{container}",
    "x-ms-deleted-container-version": "0123456789ABCDEF",
    "x-ms-expiry-option": "NeverExpire",
    "x-ms-lease-duration": "15",
    "x-ms-lease-id": A,
    "x-ms-immutability-policy-until-date": "Fri, 01 Jan 2100 00:00:00 GMT",
    "x-ms-legal-hold": "false",
    "x-ms-proposed-lease-id": B,
    "x-ms-range": "bytes=0-511",
    "x-ms-sequence-number-action": "increment",
    "x-ms-source-container-name": "elsewhere",
    "x-ms-source-range": "bytes=0-511",
}
# An optional field that distinguishes the operation from others on the same URL, or that is needed.
_TELLING = {
    "pageblob_get_page_ranges_diff": ("prevsnapshot", "2026-01-02T03:04:05.1234567Z"),
    "blob_delete_permanently": ("snapshot", "2026-01-02T03:04:05.1234567Z"),
}
_BATCH = (
    b"--batch\r\nContent-Type: application/http\r\n\r\n"
    b"DELETE /{container}/{blob} HTTP/1.1\r\n\r\n\r\n--batch--\r\n"
)
_BODIES = {
    "service_set_properties": b"<StorageServiceProperties/>",
    "blockblob_commit_block_list": b"<BlockList/>",
    "blockblob_stage_block": b"block",
    "service_submit_batch": _BATCH,
    "container_submit_batch": _BATCH,
    "blob_set_tags": b"<Tags><TagSet/></Tags>",
    "appendblob_append_block": b"block",
    "pageblob_upload_pages": bytes(512),
}
_BATCH_TYPE = {"Content-Type": "multipart/mixed; boundary=batch"}
_TYPES = {"service_submit_batch": _BATCH_TYPE, "container_submit_batch": _BATCH_TYPE}


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that names every required field of its operation."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def with_query(self, query: str) -> str:
        """The target with more parameters."""
        return self.target + ("&" if "?" in self.target else "?") + query


def request_of(row: Row, container: str, blob: str = "b") -> Sample:
    """A request that the table's row describes."""
    path = row.path.replace("{filesystem}/{path}", "{container}/{blob}")
    path = path.replace("{container}", container).replace("{blob}", blob)
    query = dict(row.query)
    headers = dict(_TYPES.get(row.id, {}))
    if row.query.get("comp") == "page":
        # The range is not in the tables, since it may be in either of two headers.
        headers["x-ms-range"] = "bytes=0-511"
    for field in row.required:
        name, _, value = field.partition("=")
        if name == "Content-Length":
            continue
        value = value or _VALUES[name].replace("{container}", container)
        if name.startswith("?"):
            query[name[1:]] = value
        else:
            headers[name] = value
    if row.id in _TELLING:
        name, value = _TELLING[row.id]
        query[name] = value
    pairs = "&".join(f"{name}={value}" for name, value in query.items())
    target = f"{path}?{pairs}" if pairs else path
    body = _BODIES.get(row.id, b"")
    body = body.replace(b"{container}", container.encode()).replace(b"{blob}", blob.encode())
    return Sample(row.methods[0], target, headers, body)


def send_row(client: Client, row: Row, container: str, token: str) -> Answer:
    """The answer to a row's request that a shared access signature alone authorizes."""
    sample = request_of(row, container)
    return client.send(
        sample.method, sample.with_query(token), sample.headers, sample.body, auth=None
    )
