"""The response headers of operations on containers and the account.

Documents: listings.py. Source: response headers of "Operations on containers", "Get Account
Information"; reference section 12.
"""

from __future__ import annotations

from typing import Final

from strongroom.operations.core.answers import Headers, metadata
from strongroom.operations.core.leases import lease_headers
from strongroom.operations.core.spec import Returned
from strongroom.semantics.blob import encryption_scopes
from strongroom.semantics.blob.container_protection import NOTHING
from strongroom.services.blob.containers.containers import ContainerView
from strongroom.values import ACCOUNT_SCOPE, PublicAccess, etag_text, rfc1123

CONTAINER_ETAG: Final = Returned("ETag", lambda view: etag_text(view.record.shown_etag))
CONTAINER_LAST_MODIFIED: Final = Returned(
    "Last-Modified", lambda view: rfc1123(view.record.modified)
)
PUBLIC_ACCESS: Final = Returned(
    "x-ms-blob-public-access", lambda view: view.record.public_access.value or None
)

SKU_NAME: Final = Returned("x-ms-sku-name", lambda account: account.sku_name)
ACCOUNT_KIND: Final = Returned("x-ms-account-kind", lambda account: account.kind)
HIERARCHICAL: Final = Returned(
    "x-ms-is-hns-enabled", lambda account: str(account.hierarchical_namespace).lower()
)


def container_headers(view: ContainerView) -> Headers:
    """The headers of Get Container Properties, except its ETag and Last-Modified."""
    record = view.record
    access: Headers = ()
    if record.public_access is not PublicAccess.NONE:
        access = (("x-ms-blob-public-access", record.public_access.value),)
    lease = lease_headers(record.lease, view.now)
    protection = view.protection or NOTHING
    protected = (
        ("x-ms-has-immutability-policy", str(protection.retention_days > 0).lower()),
        ("x-ms-has-legal-hold", str(bool(protection.holds)).lower()),
    )
    immutability = (
        "x-ms-immutable-storage-with-versioning-enabled",
        str(view.immutability).lower(),
    )
    scopes = (
        (encryption_scopes.DEFAULT_HEADER, record.scope or ACCOUNT_SCOPE),
        (encryption_scopes.DENY_HEADER, str(record.denies_scopes).lower()),
    )
    return (*metadata(view), *lease, *access, *protected, immutability, *scopes)
