"""Listings of previous versions and of deleted blobs, as kinds of long work."""

from typing import Final

from benchmarks.endpoint import Endpoint, UnexpectedAnswer
from benchmarks.engine import CYCLE
from benchmarks.fairness.kinds import (
    Kind,
    Running,
    check_listed,
    get,
    nothing,
    requests,
)
from benchmarks.workloads import make_container, put_blob
from strongroom.account_switches import DEFAULT_SWITCHES, Switches

_VERSIONS: Final = 5_000
_DELETED: Final = 2_000
_ALL: Final = "include=versions,snapshots,deleted"
_ONE: Final = f"/versions?restype=container&comp=list&{_ALL}&prefix=one"
_MANY: Final = f"/versions?restype=container&comp=list&{_ALL}&prefix=many"
_HIDDEN: Final = f"/deleted?restype=container&comp=list&{_ALL}"
_KEPT: Final = (
    "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>{}</Enabled>{}"
    "</DeleteRetentionPolicy></StorageServiceProperties>"
)


def _prepare_versions(running: Running) -> None:
    """Write one blob 5,000 times, and 2,500 blobs twice; each write leaves a version."""
    endpoint = running.endpoints["blob"]
    make_container(endpoint, "/versions")
    running.switch(Switches(versioning=True))
    endpoint.fill(put_blob(endpoint, "/versions/one", b"x"), _VERSIONS)
    for _ in range(2):
        endpoint.fill(put_blob(endpoint, f"/versions/many-{CYCLE}", b"x"), _VERSIONS // 2)
    running.switch(DEFAULT_SWITCHES)
    check_listed(endpoint, _ONE, "<VersionId>", _VERSIONS)
    check_listed(endpoint, _MANY, "<VersionId>", _VERSIONS)


def _prepare_deleted(endpoint: Endpoint) -> None:
    """Delete 2,000 blobs, and overwrite another one 2,000 times. Soft delete keeps all of it."""
    make_container(endpoint, "/deleted")
    for path in ("/deleted/one", f"/deleted/{CYCLE}"):
        endpoint.fill(put_blob(endpoint, path, b"x"), _DELETED)
    _retain(endpoint, "true", "<Days>7</Days>")
    endpoint.fill(put_blob(endpoint, "/deleted/one", b"x"), _DELETED)
    delete = endpoint.step("delete", "DELETE", f"/deleted/{CYCLE}", 202)
    endpoint.fill(delete, _DELETED)
    _retain(endpoint, "false", "")
    check_listed(endpoint, _HIDDEN, "<Deleted>true", 2 * _DELETED)


def _retain(endpoint: Endpoint, enabled: str, days: str) -> None:
    body = _KEPT.format(enabled, days).encode()
    fields = {"Content-Type": "application/xml"}
    status, answer = endpoint.call("PUT", "/?restype=service&comp=properties", fields, body)
    if status != 202:
        raise UnexpectedAnswer(f"Set Blob Service Properties: {status} {answer[:200]!r}")


_LISTED: Final = requests("", nothing, get(_ONE))

VERSIONS: Final = (
    Kind("list 5,000 versions of a blob", _prepare_versions, _LISTED.begin),
    requests("list 5,000 versions of 2,500 blobs", nothing, get(_MANY)),
    requests("list 4,000 deleted blobs and snapshots", _prepare_deleted, get(_HIDDEN)),
)
