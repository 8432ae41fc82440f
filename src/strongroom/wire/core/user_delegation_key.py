"""User delegation keys as XML: the request for a key, and the key that is issued.

Which times are accepted: services/core/delegation.py; how a key is derived: auth/delegation.py.
Source: "Get User Delegation Key", request body and response body.
"""

from __future__ import annotations

import base64
import re
from typing import Final

import msgspec

from strongroom.times import parse_iso8601
from strongroom.values import iso7
from strongroom.wire.core import xml

_TENANT: Final = re.compile(r"[0-9A-Za-z.-]{1,256}")


class KeyInfo(msgspec.Struct, frozen=True):
    """The key that a client requests. Times in ticks; `start` None = now.

    `delegated_tenant` is the tenant of the users for whom tokens will be signed, "" = not given.
    """

    start: int | None
    expiry: int
    delegated_tenant: str = ""


def read_key_info(body: bytes) -> KeyInfo:
    root = xml.read(body, "KeyInfo")
    root.only("Start", "Expiry", "DelegatedUserTid")
    start, tenant = root.child("Start"), root.child("DelegatedUserTid")
    tenant_id = "" if tenant is None else tenant.text.strip()
    if tenant_id and not _TENANT.fullmatch(tenant_id):
        raise xml.invalid_node("DelegatedUserTid", tenant_id, "It must be the id of a tenant.")
    has_start = start is not None and start.text.strip()
    return KeyInfo(
        _ticks(start) if start is not None and has_start else None,
        _ticks(root.require("Expiry")),
        tenant_id,
    )


def _ticks(element: xml.Element) -> int:
    text = element.text.strip()
    ticks = parse_iso8601(text)
    if ticks is None:
        raise xml.invalid_node(element.name, text, "The value is not a UTC time in ISO 8601.")
    return ticks


def write_user_delegation_key(
    *,
    object_id: str,
    tenant: str,
    start: int,
    expiry: int,
    service: str,
    version: str,
    delegated_tenant: str,
    value: bytes,
) -> bytes:
    """`start` and `expiry` are in ticks, whole seconds."""
    fields = [
        ("SignedOid", object_id),
        ("SignedTid", tenant),
        ("SignedStart", iso7(start)[:19] + "Z"),
        ("SignedExpiry", iso7(expiry)[:19] + "Z"),
        ("SignedService", service),
        ("SignedVersion", version),
    ]
    if delegated_tenant:
        fields.append(("SignedDelegatedUserTid", delegated_tenant))
    fields.append(("Value", base64.b64encode(value).decode("ascii")))
    inner = "".join(f"<{name}>{xml.escape(text)}</{name}>" for name, text in fields)
    return f"{xml.DECLARATION}<UserDelegationKey>{inner}</UserDelegationKey>".encode()
