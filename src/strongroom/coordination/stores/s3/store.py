"""An S3 bucket, or one on a compatible server, as a store: one object per key.

Lives here: `S3Store`. Every write is conditional (`If-None-Match: *`, `If-Match`). The ETag of an
object depends on its content, so rewriting the same bytes would restore an old version. Each object
therefore begins with a line of JSON that holds a nonce, and no ETag is ever reused. Not every
server supports a conditional DELETE. So a deletion conditionally writes a marker, which readers
treat as absent. Source: "Add preconditions to S3 operations with conditional requests" of the
Amazon S3 documentation. Must not live here: signatures (s3/http.py), leases (observers measure the
time), watches (waiters poll).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import (
    CONFLICT,
    Applied,
    CasOutcome,
    Conflict,
    Entry,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import (
    CorruptRecord,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.options.environment import variable
from strongroom.coordination.options.url_options import ANY, SWITCH, UrlOptions, check_options
from strongroom.coordination.schema.records import DECODE_ERRORS
from strongroom.coordination.store import AsyncStore, Promises
from strongroom.coordination.stores.connections.http_pool import HttpResponse, NoResponse
from strongroom.coordination.stores.s3.http import S3Bucket, S3Credentials, S3Http
from strongroom.coordination.stores.threaded_store import StoreBase, ThreadedStore

_OPTIONS: Final = UrlOptions({"endpoint": ANY, "region": ANY, "path": SWITCH})
_DELETION_MARKER: Final = b"deleted "
# The marker ends with 16 digits and a newline. Every entry is longer.
_DELETION_MARKER_BYTES: Final = len(_DELETION_MARKER) + 17
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9]+)</Code>")
_OBJECT: Final = re.compile(r"<Contents>.*?</Contents>", re.DOTALL)
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_UNCERTAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class S3Store(StoreBase):
    """Objects of one bucket; the bucket must exist.

    Arguments:
        bucket, credentials: see s3/http.py.
        clock: provides dates and nonces, and measures time limits.
    """

    def __init__(
        self, bucket: S3Bucket, credentials: S3Credentials, clock: Clocks | None = None
    ) -> None:
        self._bucket, self._credentials = bucket, credentials
        self._clock = clock or SystemClocks()
        self._http = S3Http(bucket, credentials, self._clock)

    # Reading

    def get(self, key: str, timeout_s: float) -> Entry | None:
        response = self._read(key, {}, timeout_s)
        if response.status == 404 and _code(response) in ("NoSuchKey", ""):
            return None
        if response.status != 200:
            raise _error_of(key, response)
        if response.body.startswith(_DELETION_MARKER):
            return None
        return _entry(key, response)

    def _read(self, key: str | None, query: Mapping[str, str], timeout_s: float) -> HttpResponse:
        try:
            return self._http.send("GET", key, query, {}, b"", timeout_s)
        except NoResponse as error:
            raise StoreUnavailable(str(error)) from error

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        key_prefix = self._bucket.prefix
        query = {"list-type": "2", "prefix": key_prefix + prefix}
        keys: list[str] = []
        until_s = self._clock.monotonic_s() + timeout_s
        while True:
            response = self._read(None, query, until_s - self._clock.monotonic_s())
            if response.status != 200:
                raise _error_of(prefix, response)
            text = response.body.decode()
            for found in _OBJECT.findall(text):
                if int(_element(found, "Size") or 0) > _DELETION_MARKER_BYTES:
                    keys.append(_element(found, "Key").removeprefix(key_prefix))
            if _element(text, "IsTruncated") != "true":
                return sorted(keys)
            query["continuation-token"] = _element(text, "NextContinuationToken")

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        raise Unsupported("a bucket cannot be watched; read it")

    # Writing

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        head = json.dumps({"nonce": self._clock.nonce(), "note": note}, separators=(",", ":"))
        body = head.encode() + b"\n" + value
        if expected is not None:
            return self._put(key, {"If-Match": expected}, body, timeout_s)
        until_s = self._clock.monotonic_s() + timeout_s
        outcome = self._put(key, {"If-None-Match": "*"}, body, timeout_s)
        if not isinstance(outcome, Conflict):
            return outcome
        left_s = until_s - self._clock.monotonic_s()
        response = self._read(key, {}, left_s)  # a marker counts as absent
        if response.status != 200 or not response.body.startswith(_DELETION_MARKER):
            return CONFLICT
        left_s = until_s - self._clock.monotonic_s()
        return self._put(key, {"If-Match": response.etag}, body, left_s)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        marker = _DELETION_MARKER + self._clock.nonce().encode() + b"\n"
        outcome = self._put(key, {"If-Match": expected}, marker, timeout_s)
        return Applied(expected) if isinstance(outcome, Applied) else outcome

    def _put(
        self, key: str, condition: Mapping[str, str], body: bytes, timeout_s: float
    ) -> CasOutcome:
        headers = {"content-type": "application/octet-stream", **condition}
        try:
            response = self._http.send("PUT", key, {}, headers, body, timeout_s)
        except NoResponse as error:
            return Unknown(str(error))
        code = _code(response)
        if response.status == 200:
            return Applied(response.etag)
        # 409 ConditionalRequestConflict: another write was in progress; this one was not applied.
        if response.status in (409, 412) or (response.status == 404 and code in ("NoSuchKey", "")):
            return CONFLICT
        if response.status in _UNCERTAIN:
            return Unknown(f"{response.status} {code}")
        raise _error_of(key, response)

    # Promises, asyncio, closing

    def promises(self) -> Promises:
        return Promises(
            store=f"the S3 bucket {self._bucket.name!r} at {self._http.pool.host_field}",
            mutual_exclusion="clock-rate",
            assumption="the clocks of all participants run at about the same rate, and the server"
            " keeps the conditions of conditional writes",
            fencing="durable",
            watch="poll",
            durable=True,
            scope="network",
            ttl_min_s=1.0,
            notes=(
                "a server that ignores If-Match or If-None-Match on PUT gives no lock at all:"
                " try it with many at once",
                "every look of a waiter is a request that is paid for",
            ),
        )

    def aio(self) -> AsyncStore:
        return _AioS3(S3Store(self._bucket, self._credentials, self._clock))

    def after_fork(self) -> None:
        self._http.pool.reset()

    def close(self) -> None:
        self._http.pool.close()


class _AioS3(ThreadedStore):
    async def close(self) -> None:
        self._store.close()
        await super().close()


def _entry(key: str, response: HttpResponse) -> Entry:
    head, newline, value = response.body.partition(b"\n")
    try:
        document = json.loads(head)
        if newline and isinstance(document["nonce"], str):
            return Entry(value, response.etag, None, str(document["note"]))
    except DECODE_ERRORS:
        pass  # reported below
    raise CorruptRecord(key, response.body, "a line of JSON and a value")


def _code(response: HttpResponse) -> str:
    found = _CODE.search(response.body)
    return found[1].decode() if found else ""


def _element(text: str, name: str) -> str:
    # Keys are ASCII without markup (names.py), so the XML need not be parsed.
    found = re.search(f"<{name}>([^<]*)</{name}>", text)
    return html.unescape(found[1]) if found else ""


def _error_of(where: str, response: HttpResponse) -> StoreRefused | StoreUnavailable:
    text = f"{where}: {response.status} {_code(response)}".rstrip()
    if response.status in _UNCERTAIN:
        return StoreUnavailable(text)
    return StoreRefused(text)


def open_url(url: str, query: Mapping[str, str]) -> S3Store:
    """Return the store in a bucket.

    Arguments:
        url: s3://BUCKET or s3://BUCKET/PREFIX
        query: `endpoint` is the URL of the server (by default AWS_ENDPOINT_URL_S3,
            AWS_ENDPOINT_URL, else Amazon's of the region). `region` is by default AWS_REGION or
            AWS_DEFAULT_REGION, else us-east-1. `path=0` puts the bucket into the host's name, even
            with a custom endpoint. Keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
            AWS_SESSION_TOKEN.
    """
    check_options(url, query, _OPTIONS)
    parts = urlsplit(url)
    if not _BUCKET.fullmatch(parts.netloc):
        # The URL is not quoted: it may hold keys that were put in the wrong place.
        raise Unsupported("the URL names no bucket; write s3://bucket/prefix")
    prefix = unquote(parts.path).strip("/")
    region = query.get("region") or variable("AWS_REGION") or variable("AWS_DEFAULT_REGION")
    region = region or "us-east-1"
    own = query.get("endpoint") or variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL")
    bucket = S3Bucket(
        name=parts.netloc,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=(own or f"https://s3.{region}.amazonaws.com").rstrip("/"),
        region=region,
        path_style=query.get("path", "1" if own or "." in parts.netloc else "0") != "0",
    )
    key_id, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
    if not key_id or not secret:
        raise Unsupported("s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    return S3Store(bucket, S3Credentials(key_id, secret, variable("AWS_SESSION_TOKEN")))
