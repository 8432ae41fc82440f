"""Requests to an S3 bucket, signed with Signature Version 4.

Lives here: the signature as a pure function, and the address of a bucket. Source: "Signature
Version 4 signing process" and "Virtual hosting of buckets" of the Amazon S3 documentation. Must not
live here: sockets (connections/http_pool.py), the meaning of a status (s3/store.py).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

from strongroom.coordination.clock import Clocks
from strongroom.coordination.stores.connections.http_pool import (
    HttpPool,
    HttpResponse,
    endpoint_parts,
)

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """An access key.

    Attributes:
        secret: the secret access key; never shown.
        token: the session token of temporary credentials; empty for others.
    """

    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False, default="")


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """The location of the objects.

    Attributes:
        prefix: the text before every key, empty or ending with a slash.
        endpoint: the URL of the server.
        region: the region, as it is signed.
        path_style: whether the bucket is in the path instead of the host's name.
    """

    name: str
    prefix: str
    endpoint: str
    region: str
    path_style: bool

    @property
    def url(self) -> str:
        """The URL to connect to."""
        if self.path_style:
            return self.endpoint
        parts = endpoint_parts(self.endpoint)
        return f"{parts.scheme}://{self.name}.{parts.netloc}"

    def target(self, key: str | None) -> str:
        """Return the path of an object, or of the bucket itself, percent-encoded."""
        bucket = f"/{self.name}" if self.path_style else ""
        if key is None:
            return bucket or "/"
        return bucket + "/" + quote(self.prefix + key, safe="/-_.~")


class S3Http:
    """Sends signed requests to one bucket.

    Arguments:
        clock: provides dates, and measures time limits.
    """

    def __init__(self, bucket: S3Bucket, credentials: S3Credentials, clock: Clocks) -> None:
        self.bucket, self._credentials, self._clock = bucket, credentials, clock
        self.pool = HttpPool(bucket.url, clock)

    def send(
        self,
        method: str,
        key: str | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float,
    ) -> HttpResponse:
        """Send one request and return the response; raises like `HttpPool.send`.

        Arguments:
            key: the key without the prefix; None for the bucket.
            query, headers: not encoded; Host, date and signature are added.
            timeout_s: the time for connecting, sending and receiving together.
        """
        target = self.bucket.target(key)
        now = datetime.fromisoformat(self._clock.wall_text())
        sent = {"host": self.pool.host_field, **{name.lower(): v for name, v in headers.items()}}
        digest = hashlib.sha256(body).hexdigest()
        sent |= {"x-amz-date": f"{now:%Y%m%dT%H%M%SZ}", "x-amz-content-sha256": digest}
        if self._credentials.token:
            sent["x-amz-security-token"] = self._credentials.token
        line = canonical_query(query)
        sent["authorization"] = authorization(
            self._credentials, self.bucket.region, method, target, line, sent
        )
        del sent["host"]  # the pool adds it
        whole = f"{target}?{line}" if line else target
        return self.pool.send(method, whole, sent, body, timeout_s)


def canonical_query(query: Mapping[str, str]) -> str:
    """Return the query as it is signed and sent: encoded, then sorted."""
    pairs = sorted((quote(name, safe="-_.~"), quote(v, safe="-_.~")) for name, v in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def authorization(
    credentials: S3Credentials,
    region: str,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
) -> str:
    """Return the Authorization header of a request.

    Arguments:
        credentials, region: the signer's key, and the region.
        method, path, query: as they are sent; the query from `canonical_query`.
        headers: all headers to sign, names in lower case, including host, x-amz-date and
            x-amz-content-sha256.
    """
    names = sorted(headers)
    signed = ";".join(names)
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in names]
    digest = headers["x-amz-content-sha256"]
    request = "\n".join((method, path, query, *lines, "", signed, digest))
    date = headers["x-amz-date"]
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, date, scope, hashed))
    key = f"AWS4{credentials.secret}".encode()
    for part in (date[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    holder = f"{credentials.key_id}/{scope}"
    return f"{_ALGORITHM} Credential={holder}, SignedHeaders={signed}, Signature={signature}"
