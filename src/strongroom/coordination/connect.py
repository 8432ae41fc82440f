"""Opens a client from a URL: the registry of schemes.

Lives here: the table of schemes, and `connect`. A store's module and its driver library are
imported only when its scheme is used, so the core needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from strongroom.coordination.client import Client
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.url_options import query_of
from strongroom.coordination.store import Store

OpenUrl = Callable[[str, Mapping[str, str]], Store]
"""Opens the store that a URL names; takes the URL and its options (see `check_options`)."""

_PACKAGE: Final = "strongroom.coordination.stores"
SCHEMES: Final[dict[str, str]] = {
    "memory": f"{_PACKAGE}.memory:open_url",
    "file": f"{_PACKAGE}.file:open_url",
    "azure": f"{_PACKAGE}.azure.store:open_url",
    "http": f"{_PACKAGE}.azure.store:open_http_url",
    "https": f"{_PACKAGE}.azure.store:open_http_url",
    "etcd": f"{_PACKAGE}.etcd.store:open_url",
    "postgres": f"{_PACKAGE}.postgres.store:open_url",
    "postgresql": f"{_PACKAGE}.postgres.store:open_url",
    "redis": f"{_PACKAGE}.redis.store:open_url",
    "rediss": f"{_PACKAGE}.redis.store:open_url",
    "s3": f"{_PACKAGE}.s3.store:open_url",
}
"""Scheme -> "module:function"; a program may add its own."""

_EXTRAS: Final[dict[str, str]] = {"psycopg": "postgres"}
"""A library that a store needs -> the extra of `pip install 'strongroom[...]'` that has it."""


def open_store(url: str) -> Store:
    """Return the store that a URL names.

    Raises:
        Unsupported: the scheme is unknown, the URL is malformed, or the driver library is missing.
            The message names the extra to install, and no secret.
    """
    try:
        url.encode()  # a file name that is not valid UTF-8 cannot be part of a URL
        parts = urlsplit(url)
        query = query_of(url)
    except ValueError:
        # The text of this error may quote the URL, and with it the password.
        raise Unsupported("the URL of the store cannot be read") from None
    target = SCHEMES.get(parts.scheme)
    if target is None:
        known = ", ".join(sorted(SCHEMES))
        raise Unsupported(f"no store is known for {parts.scheme!r}; known are {known}")
    module, _, function = target.partition(":")
    try:
        opener: OpenUrl = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(error.name or "")
        remedy = f": pip install 'strongroom[{extra}]'" if extra else ""
        raise Unsupported(
            f"{parts.scheme}:// needs {error.name!r}, not installed here{remedy}"
        ) from error
    return opener(url, query)


def connect(url: str, *, label: str = "", rate_error: float = 0.05) -> Client:
    """Return a client of the store that a URL names. No request is sent yet.

    Arguments:
        url: like azure://account/container, http://host:port/account/container, etcd://host:2379,
            postgres://..., redis://..., s3://..., file:///path, memory://name.
        label: the name of this participant, for people; host and process id by default.
        rate_error: the fraction by which any node's clock may run too fast or too slow.

    Raises:
        Unsupported: see `open_store`.
    """
    return Client(open_store(url), label=label, rate_error=rate_error)
