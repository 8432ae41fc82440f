"""What Azure Files has and this server does not serve yet: operations, headers, parameters.

Lives here: declarations without a service function (answered 501 with their name), and the headers
and parameters that ask for more than is done. Source: docs/operations/file.md, rows marked
`not yet`.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.operations.core import permissions as may
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.operations.core.unserved import not_served
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query

_SHARE, _DIRECTORY, _FILE = Resource.SHARE, Resource.DIRECTORY, Resource.FILE
_READS: Final = ("GET", "HEAD")


def _later(
    name: str,
    id: str,
    methods: tuple[str, ...],
    resource: Resource,
    permission: Permission,
    *,
    comp: str | None = None,
    when: tuple[When, ...] = (),
    restype: str | None = None,
) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=methods,
        resource=resource,
        restype=restype,
        comp=comp,
        when=when,
        permission=permission,
    )


_PUT: Final = ("PUT",)
_LEASE: Final = "x-ms-lease-action"
_COPIES: Final = When("x-ms-copy-source")
_WRITES: Final = "x-ms-write"

OPERATIONS: Final = (
    _later("Get Share Stats", "share_get_statistics", ("GET",), _SHARE, may.SHARE_READ,
           comp="stats", restype="share"),
    _later("Snapshot Share", "share_create_snapshot", _PUT, _SHARE, may.SHARE_CREATE,
           comp="snapshot", restype="share"),
    _later("Restore Share", "share_restore", _PUT, _SHARE, may.SHARE_WRITE, comp="undelete",
           restype="share"),
    _later("Create Permission", "share_create_permission", _PUT, _SHARE, may.PERMISSION_CREATE,
           comp="filepermission", restype="share"),
    _later("Get Permission", "share_get_permission", ("GET",), _SHARE, may.PERMISSION_READ,
           comp="filepermission", restype="share"),
    _later("Create Directory", "directory_create", _PUT, _DIRECTORY, may.FILE_CREATE,
           restype="directory"),
    _later("Delete Directory", "directory_delete", ("DELETE",), _DIRECTORY, may.FILE_DELETE,
           restype="directory"),
    _later("Get Directory Properties", "directory_get_properties", _READS, _DIRECTORY,
           may.FILE_READ, restype="directory"),
    _later("Set Directory Properties", "directory_set_properties", _PUT, _DIRECTORY,
           may.FILE_WRITE, comp="properties", restype="directory"),
    _later("Get Directory Metadata", "directory_get_metadata", _READS, _DIRECTORY, may.FILE_READ,
           comp="metadata", restype="directory"),
    _later("Set Directory Metadata", "directory_set_metadata", _PUT, _DIRECTORY, may.FILE_WRITE,
           comp="metadata", restype="directory"),
    _later("List Directories and Files", "directory_list_files_and_directories_segment", ("GET",),
           _DIRECTORY, may.FILE_LIST, comp="list", restype="directory"),
    _later("Rename Directory", "directory_rename", _PUT, _DIRECTORY, may.FILE_WRITE, comp="rename",
           restype="directory"),
    _later("Copy File", "file_start_copy", _PUT, _FILE, may.FILE_CREATE, when=(_COPIES,)),
    _later("Abort Copy File", "file_abort_copy", _PUT, _FILE, may.FILE_WRITE, comp="copy"),
    _later("Create File", "file_create", _PUT, _FILE, may.FILE_CREATE,
           when=(When("x-ms-type", "file"),)),
    _later("Get File", "file_download", ("GET",), _FILE, may.FILE_READ),
    _later("Get File Properties", "file_get_properties", ("HEAD",), _FILE, may.FILE_READ),
    _later("Set File Properties", "file_set_http_headers", _PUT, _FILE, may.FILE_WRITE,
           comp="properties"),
    _later("Get File Metadata", "file_get_metadata", _READS, _FILE, may.FILE_READ, comp="metadata"),
    _later("Set File Metadata", "file_set_metadata", _PUT, _FILE, may.FILE_WRITE, comp="metadata"),
    _later("Delete File", "file_delete", ("DELETE",), _FILE, may.FILE_DELETE),
    _later("Put Range from URL", "file_upload_range_from_url", _PUT, _FILE, may.FILE_WRITE,
           comp="range", when=(When(_WRITES, "update"), _COPIES)),
    _later("Put Range", "file_upload_range", _PUT, _FILE, may.FILE_WRITE, comp="range",
           when=(When(_WRITES),)),
    _later("List Ranges", "file_get_range_list", ("GET",), _FILE, may.FILE_READ, comp="rangelist"),
    _later("Lease File (acquire)", "file_acquire_lease", _PUT, _FILE, may.FILE_WRITE, comp="lease",
           when=(When(_LEASE, "acquire"),)),
    _later("Lease File (change)", "file_change_lease", _PUT, _FILE, may.FILE_WRITE, comp="lease",
           when=(When(_LEASE, "change"),)),
    _later("Lease File (release)", "file_release_lease", _PUT, _FILE, may.FILE_WRITE, comp="lease",
           when=(When(_LEASE, "release"),)),
    _later("Lease File (break)", "file_break_lease", _PUT, _FILE, may.FILE_BREAK, comp="lease",
           when=(When(_LEASE, "break"),)),
    _later("List Handles", "file_list_handles", ("GET",), _FILE, may.FILE_READ, comp="listhandles"),
    _later("Force Close Handles", "file_force_close_handles", _PUT, _FILE, may.FILE_WRITE,
           comp="forceclosehandles"),
    _later("Rename File", "file_rename", _PUT, _FILE, may.FILE_WRITE, comp="rename"),
    _later("Create Symbolic Link", "file_create_symbolic_link", _PUT, _FILE, may.FILE_CREATE,
           restype="symboliclink"),
    _later("Get Symbolic Link", "file_get_symbolic_link", ("GET",), _FILE, may.FILE_READ,
           restype="symboliclink"),
    _later("Create Hard Link", "file_create_hard_link", _PUT, _FILE, may.FILE_CREATE,
           restype="hardlink"),
)  # fmt: skip

_HEADERS: Final = frozenset(
    (
        # Shares for NFS, and links, owners and modes in them.
        *("x-ms-root-squash", "x-ms-enable-snapshot-virtual-directory-access"),
        *("x-ms-owner", "x-ms-group", "x-ms-mode", "x-ms-file-file-type"),
        # Shares with provisioned throughput.
        *("x-ms-share-provisioned-iops", "x-ms-share-provisioned-bandwidth-mibps"),
        *("x-ms-share-paid-bursting-enabled", "x-ms-share-paid-bursting-max-iops"),
        *("x-ms-share-paid-bursting-max-bandwidth-mibps", "x-ms-enable-smb-directory-lease"),
    )
)
_QUERY: Final = frozenset(("sharesnapshot", "prevsharesnapshot"))


def refuse_unserved(headers: Headers, query: Query) -> None:
    """501 for a header or parameter that asks for something that is not served.

    Raises: StorageError NotImplemented that names it.
    """
    if headers.has_none_of(_HEADERS) and query.has_none_of(_QUERY):
        return  # as nearly always
    for name, _ in headers.lowered():
        if name in _HEADERS:
            raise not_served(f"The header {name}")
    for name in query:
        if name in _QUERY:
            raise not_served(f"The query parameter {query.as_sent(name)}")
