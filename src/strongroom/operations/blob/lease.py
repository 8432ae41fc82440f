"""Declarations: the five actions of Lease Container and of Lease Blob.

The two kinds of resource; the actions: operations/core/leases.py. Source: "Lease Container" and
"Lease Blob" of the REST reference; docs/operations/blob.md, tables "Containers" and "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import copies as copy_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.leases import ACTIONS, LeasedKind, declared
from strongroom.operations.core.spec import Resource
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import leasing
from strongroom.services.core.calls import ConditionUse, Existence, Rule
from strongroom.values import Purpose

_KINDS: Final = (
    LeasedKind(
        "Container",
        Resource.CONTAINER,
        "container",
        permissions.CONTAINER_WRITE,
        permissions.CONTAINER_BREAK,
        Rule(LeaseUse.NONE, ConditionUse.DATES, purpose=Purpose.UPKEEP),
        leasing.lease_container,
    ),
    LeasedKind(
        "Blob",
        Resource.BLOB,
        None,
        permissions.WRITE,
        permissions.BREAK_LEASE,
        Rule(LeaseUse.NONE, ConditionUse.WRITE, Existence.ANY, purpose=Purpose.UPKEEP),
        leasing.lease_blob,
        (copy_errors.PENDING_COPY_OPERATION,),
    ),
)

OPERATIONS: Final = tuple(declared(kind, action) for kind in _KINDS for action in ACTIONS)
