"""Request paths: account, container and blob, in path style and host style.

    path style   http://127.0.0.1:10000/ACCOUNT/container/blob
    host style   http://ACCOUNT.blob.localhost:10000/container/blob

On a port of several services a *mount* comes first: `/blob/ACCOUNT/container/blob`. The suffix
`-secondary` of an account selects the read-only endpoint; in path style the account's name may
follow it. Naming rules: semantics/core/names.py. Source: "Naming and referencing containers, blobs,
and metadata"; RFC 3986.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError

ROOT_CONTAINER: Final = "$root"
SECONDARY: Final = "-secondary"
BLOB_SUFFIXES: Final = ("blob.localhost",)
_HOST_CHARS_MAX: Final = 260  # a name of 253 characters, and a port
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class UrlTarget(msgspec.Struct, frozen=True):
    """The resource that a URL names.

    `blob` is decoded and may contain slashes; None = the URL has no such part. `mount` is the part
    of the path before the account, with a leading slash, usually "".
    """

    account: str
    container: str | None = None
    blob: str | None = None
    secondary: bool = False
    host_style: bool = False
    mount: str = ""

    def in_root(self) -> UrlTarget:
        """The same path read as a blob of the root container: `/ACCOUNT/blob`."""
        if self.container is None or self.blob is not None:
            return self
        return msgspec.structs.replace(self, container=ROOT_CONTAINER, blob=self.container)


class FullPath(NamedTuple):
    """A path that names a resource, still encoded, and the mount at its beginning, or ""."""

    path: str
    mount: str = ""


def parse(raw_path: str, account: str | None = None, mount: str = "") -> UrlTarget:
    """Split a path into account, container and blob.

    Arguments:
        raw_path: the path exactly as sent, decoded as latin-1, without the query.
        account: the label that the host names (`account_of_host`); None: the path names it.
        mount: the prefix of the path that is not part of the resource's name.

    Raises: InvalidUri for a bad escape, text that is not UTF-8, or a part that is empty.
    """
    if not raw_path.startswith("/"):
        raise _invalid(raw_path)
    rest = raw_path[len(mount) + 1 :]
    if account is None:
        raw_account, _, rest = rest.partition("/")
        label = decode(raw_account)
    else:
        label = account
    raw_container, _, raw_blob = rest.partition("/")
    name = label.removesuffix(SECONDARY)
    if account is None and name != label and raw_container == name:
        # Some SDKs put the account before the path again: `/ACCOUNT-secondary/ACCOUNT/container`.
        raw_container, _, raw_blob = raw_blob.partition("/")
    if not name or (raw_blob and not raw_container):
        raise _invalid(raw_path)
    return UrlTarget(
        name,
        decode(raw_container) or None,
        decode(raw_blob) or None,
        name != label,
        account is not None,
        mount,
    )


def account_of_host(host: str | None, suffixes: tuple[str, ...]) -> str | None:
    """The label before one of the suffixes, in lower case; None for any other host.

    Arguments:
        host: the Host header, with or without port.
        suffixes: domains below which a single label is an account (`blob.localhost`).
    """
    if not host or len(host) > _HOST_CHARS_MAX:
        return None
    return _account_of_host(host, suffixes)


@lru_cache(maxsize=256)
def _account_of_host(host: str, suffixes: tuple[str, ...]) -> str | None:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    label, _, domain = name.lower().rstrip(".").partition(".")
    return label if label and domain in suffixes else None


def decode(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    if _BAD_ESCAPE.search(text):
        raise _invalid(text)
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
    except ValueError:
        raise _invalid(text) from None


def _invalid(text: str) -> StorageError:
    shown = text[:256].encode("ascii", "backslashreplace").decode("ascii")
    return StorageError(errors.INVALID_URI, None, (("UriPath", shown),))
