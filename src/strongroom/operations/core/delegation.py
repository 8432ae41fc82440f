"""Get User Delegation Key, declared once for the services that issue such keys.

services/core/delegation.py makes the key. Source: "Get User Delegation Key"; docs/operations,
tables "Service".
"""

from __future__ import annotations

from typing import Any

from strongroom import limits
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML, document
from strongroom.operations.core.spec import BodyKind, Content, Operation, Origin, Resource
from strongroom.services.core import delegation
from strongroom.services.core.calls import Call, Rule
from strongroom.wire.core.user_delegation_key import read_key_info, write_user_delegation_key


def _document(result: delegation.IssuedKey, call: Call[Any], origin: Origin) -> Content:
    body = write_user_delegation_key(
        object_id=result.key.object_id,
        tenant=result.key.tenant,
        start=result.key.start,
        expiry=result.key.expiry,
        service=result.key.service,
        version=result.key.version,
        delegated_tenant=result.key.delegated_tenant,
        value=result.value,
    )
    return document(body)


def get_user_delegation_key(rule: Rule) -> Operation:
    """`rule` says how the service takes conditions."""
    return Operation(
        name="Get User Delegation Key",
        id="service_get_user_delegation_key",
        methods=("POST",),
        resource=Resource.SERVICE,
        restype="service",
        comp="userdelegationkey",
        permission=permissions.DELEGATE,
        rule=rule,
        input=delegation.GetUserDelegationKey,
        body=BodyKind("wanted", read_key_info, limits.XML_BODY_BYTES_MAX),
        returns=(XML,),
        content=_document,
        run=delegation.get_user_delegation_key,
    )
