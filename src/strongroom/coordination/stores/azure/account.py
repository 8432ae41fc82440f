"""The Azure Storage account that a URL names, and the signing of its requests.

Lives here: the rules for credentials, and SharedKey for the Blob service, as pure functions.
Sources: Microsoft Learn, "Configure Azure Storage connection strings", "Authorize with Shared Key",
"Use the Azurite emulator" (the development account).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from strongroom.coordination.errors import Unsupported

CONNECTION_STRING: Final = "AZURE_STORAGE_CONNECTION_STRING"
DEVELOPMENT_NAME: Final = "devstoreaccount1"
DEVELOPMENT_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_DEVELOPMENT_ENDPOINT: Final = f"http://127.0.0.1:10000/{DEVELOPMENT_NAME}"
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CONTAINER: Final = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_DEFAULT_CONTAINER: Final = "strongroom-coordination"
_SIGNED: Final = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """An account's Blob service, with the account key or a shared access signature.

    Attributes:
        name: the name of the account.
        key: the account key, decoded; never shown. Empty if there is a signature.
        endpoint: like https://name.blob.core.windows.net or http://127.0.0.1:10000/name.
        sas: the query of a shared access signature, as it is sent; never shown.
    """

    name: str
    key: bytes = field(repr=False)
    endpoint: str
    sas: str = field(default="", repr=False)
    # Each signature uses a copy, so that the key is prepared only once.
    _signer: hmac.HMAC = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_signer", hmac.new(self.key, digestmod="sha256"))

    def authorization(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> str:
        """Return the Authorization header of a request.

        Arguments:
            method: GET, PUT, ...
            path: the path as it is sent, percent-encoded, including the account if the endpoint
                does.
            query: the query parameters, not encoded.
            headers: all headers that are sent, with x-ms-date. Content-Length only if it is not 0.
        """
        sent = {name.lower(): value for name, value in headers.items()}
        lines = [method, *[sent.get(name, "") for name in _SIGNED]]
        lines += [f"{name}:{sent[name]}" for name in sorted(sent) if name.startswith("x-ms-")]
        lines.append(f"/{self.name}{path}")
        lines += [f"{name}:{query[name]}" for name in sorted(query)]
        signer = self._signer.copy()
        signer.update("\n".join(lines).encode())
        return f"SharedKey {self.name}:{base64.b64encode(signer.digest()).decode()}"


@dataclass(frozen=True, slots=True)
class AzureAddress:
    """An account and the container in it that all participants share."""

    account: AzureAccount
    container: str


def address_of(url: str, query: Mapping[str, str], connection_string: str) -> AzureAddress:
    """Return the account and container that a URL names.

    Arguments:
        url: azure://ACCOUNT/CONTAINER; both may be left out.
        query: `key`, the account's key, or `sas`, a shared access signature (percent-encoded as a
            whole); `endpoint`, the URL of its Blob service.
        connection_string: used if the URL gives no key, and names its account or none.
    """
    parts = _parts(url)
    container = unquote(parts.path).strip("/") or _DEFAULT_CONTAINER
    if not _CONTAINER.fullmatch(container):
        raise Unsupported(f"{_no_container(container)}; write azure://ACCOUNT/CONTAINER")
    return AzureAddress(_account(parts.netloc, query, connection_string), container)


def address_of_http(url: str, query: Mapping[str, str], connection_string: str) -> AzureAddress:
    """Return the account and container that the URL of a Blob service names.

    Arguments:
        url: http://HOST:PORT/ACCOUNT/CONTAINER, or https://ACCOUNT.blob.SUFFIX/CONTAINER. The
            container may be left out.
        query, connection_string: as of `address_of`, without `endpoint`.
    """
    parts = _parts(url)
    names = [unquote(name) for name in parts.path.split("/") if name]
    labels = (parts.hostname or "").split(".")
    is_host_style = len(labels) > 2 and labels[1] == "blob"
    account = labels[0] if is_host_style else (names.pop(0) if names else "")
    container = names.pop(0) if names else _DEFAULT_CONTAINER
    if not _ACCOUNT.fullmatch(account) or names:
        raise Unsupported(
            f"write {parts.scheme}://HOST:PORT/ACCOUNT/CONTAINER: the URL of the Blob service, the"
            " account and the container"
        )
    if not _CONTAINER.fullmatch(container):
        raise Unsupported(_no_container(container))
    endpoint = f"{parts.scheme}://{parts.netloc}" + ("" if is_host_style else f"/{account}")
    known = _account(account, {**query, "endpoint": endpoint}, connection_string)
    return AzureAddress(known, container)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        # The text of this error may quote the URL, and with it a key.
        raise Unsupported("the URL of the account cannot be read") from None
    # A key that is not percent-encoded may hold a slash, so that its end stands in the path.
    if "@" in parts.netloc + parts.path:
        raise Unsupported("the account's key goes into the option ?key=..., not before the host")
    return parts


def _no_container(name: str) -> str:
    # What follows a slash is not quoted: it may be the end of a key in the wrong place.
    quoted = "the path of the URL" if "/" in name else repr(name)
    return f"{quoted} is no name of a container: 3 to 63 letters, digits and single hyphens"


def _account(name: str, query: Mapping[str, str], connection_string: str) -> AzureAccount:
    if name and not _ACCOUNT.fullmatch(name):
        # The name is not quoted: it may be a key that was put in the wrong place.
        raise Unsupported(
            "the URL names no account; write azure://ACCOUNT/CONTAINER?key=..., or"
            " http://HOST:PORT/ACCOUNT/CONTAINER for a server of your own"
        )
    endpoint = query.get("endpoint", "").rstrip("/")
    key = query.get("key", "").replace(" ", "+")  # an unescaped + arrives as a space
    sas = query.get("sas", "").lstrip("?")
    if name and (key or sas):
        if not endpoint:
            developed = name == DEVELOPMENT_NAME
            endpoint = _DEVELOPMENT_ENDPOINT if developed else _public_endpoint(name)
        return AzureAccount(name, _decoded(key), endpoint, sas)
    if connection_string:
        account = account_of(connection_string)
        if name in ("", account.name):
            return replace(account, endpoint=endpoint or account.endpoint)
    if name in ("", DEVELOPMENT_NAME):
        return _development(endpoint)
    raise Unsupported(
        f"no key for the account {name!r}: set {CONNECTION_STRING}, or add ?key=... or ?sas=..."
        " to the URL"
    )


def account_of(
    text: str, service: str = "blob", development: str = _DEVELOPMENT_ENDPOINT
) -> AzureAccount:
    """Return the account of a connection string.

    Arguments:
        text: the connection string.
        service: the service whose endpoint is wanted, like `blob` or `file`.
        development: the endpoint of that service for the development account.
    """
    fields: dict[str, str] = {}
    for part in text.split(";"):
        word, _, value = part.strip().partition("=")
        fields[word.lower()] = value
    if fields.get("usedevelopmentstorage", "").lower() == "true":
        return _development(development)
    name, key = fields.get("accountname", ""), fields.get("accountkey", "")
    sas = fields.get("sharedaccesssignature", "").lstrip("?")
    endpoint = fields.get(f"{service}endpoint", "").rstrip("/")
    if not name and sas and endpoint:
        name = _account_in(endpoint)
    if not name or not (key or sas):
        raise Unsupported(
            f"{CONNECTION_STRING} needs an AccountName, and an AccountKey or a"
            " SharedAccessSignature"
        )
    scheme = fields.get("defaultendpointsprotocol", "https")
    suffix = fields.get("endpointsuffix", "core.windows.net")
    endpoint = endpoint or f"{scheme}://{name}.{service}.{suffix}"
    return AzureAccount(name, _decoded(key), endpoint, sas)


def _account_in(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return parts.path.strip("/") or (parts.hostname or "").partition(".")[0]


def _development(endpoint: str) -> AzureAccount:
    key = _decoded(DEVELOPMENT_KEY)
    return AzureAccount(DEVELOPMENT_NAME, key, endpoint or _DEVELOPMENT_ENDPOINT)


def _public_endpoint(name: str) -> str:
    return f"https://{name}.blob.core.windows.net"


def _decoded(key: str) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise Unsupported("the account's key is not base64") from None
