"""The line of one request: its fields, and its bytes.

Lives here: the fields with their names in JSON. Must not live here: where their values come from
(exchanges.py, messages.py), which of a client's texts may be shown (texts.py). Source: "Azure
Blob Storage monitoring data reference". Names and meanings are Azure's where Azure has the field.
docs/access-log.md lists them, and marks our own.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

SCHEMA_VERSION: Final = "1.0"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7e]")
_BEYOND_PLANE_0: Final = 0x10000


class Requester(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The user or application of a bearer token."""

    object_id: str = ""
    tenant_id: str = ""


class IdentityField(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False, cache_hash=True
):
    """How the request was authenticated.

    Attributes:
        type: `Account Key`, `SAS Key`, `OAuth`, `NTLM` or `Anonymous`.
        token_hash: `key1` or `key2`; of a SAS also the SHA-256 of its signature.
        sas_kind: of a SAS (our own field).
        sas_identifier: the stored access policy that a SAS names (our own field).
        account: the account whose key was proven (our own field).
        is_verified: absent for credentials that were verified; False if they were not (our own
            field).
    """

    type: str
    token_hash: str = ""
    sas_kind: str = ""
    sas_identifier: str = ""
    account: str = ""
    requester: Requester | None = None
    is_verified: bool = True


class Properties(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The properties of a storage service's log.

    Attributes:
        operation_count: 0 for the request, the number of the part for a part of a batch.
        refused_by: the rule that refused the request (our own field), as in `connection` or
            `auth.shared_key.verify`.
        engine_ms: how long the request waited for records and commits (our own field).
        interrupted: whether the answer was not sent whole (our own field).
        part_request_id: x-ms-request-id of a part's answer (our own field).
        listener: the port that the request came to (our own field).
    """

    account_name: str = ""
    service_type: str = ""
    listener: str = ""
    object_key: str = ""
    etag: str = ""
    user_agent_header: str = ""
    referrer_header: str = ""
    client_request_id: str = ""
    engine_ms: float | None = None
    request_body_size: int | None = None
    response_header_size: int | None = None
    response_body_size: int | None = None
    refused_by: str = ""
    interrupted: bool = False
    operation_count: int = 0
    part_request_id: str = ""
    smb_session_id: str = msgspec.field(default="", name="smbSessionID")
    smb_tree_connect_id: str = msgspec.field(default="", name="smbTreeConnectID")
    smb_message_id: str = msgspec.field(default="", name="smbMessageID")
    smb_command_major: int | None = None


class AccessRecord(msgspec.Struct, frozen=True, rename="camel", gc=False):
    time: str
    category: str
    operation_name: str
    operation_version: str
    status_code: int
    status_text: str
    duration_ms: float
    caller_ip_address: str
    correlation_id: str
    protocol: str
    uri: str
    identity: IdentityField
    properties: Properties
    schema_version: str = SCHEMA_VERSION


_encode: Final = msgspec.json.Encoder().encode


def line_of(record: AccessRecord) -> bytes:
    """Return the line of a record: JSON in printable ASCII, with its line end."""
    return json_of(record).encode("ascii") + b"\n"


def json_of(value: AccessRecord | str) -> str:
    """Return a value in JSON, in printable ASCII."""
    encoded = _encode(value)
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded.decode("ascii")
    return _NOT_ASCII.sub(_escaped, encoded.decode("utf-8"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _BEYOND_PLANE_0:
        return f"\\u{code:04x}"
    high, low = divmod(code - _BEYOND_PLANE_0, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
