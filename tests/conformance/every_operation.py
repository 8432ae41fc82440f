"""A request of every served operation, in an order in which each succeeds.

Lives here: the requests, as one walk for each service. Must not live here: what is measured of them
(tests/conformance/engine_calls.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.conformance.answer import Answer

Send = Callable[..., Answer]
"""send(operation id, method, target, headers, body) returns the answer. Without an id, the request
only prepares others."""

REFUSED: Mapping[str, str] = {"x-refused": "always"}
"""The headers of a request that no server of this kind grants: its refusal is what is measured."""

A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
BLOCK = {"x-ms-blob-type": "BlockBlob"}
APPEND = {"x-ms-blob-type": "AppendBlob"}
PAGE = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
PROPERTIES = "/?restype=service&comp=properties"
STATS = "/?restype=service&comp=stats"
DEPTH = 3
"""How many names the paths of directories and files have."""
BATCH_TYPE = {"Content-Type": "multipart/mixed; boundary=batch"}
RETENTION = (
    b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
    b"<AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy>"
    b"</StorageServiceProperties>"
)


@dataclass(frozen=True)
class Given:
    """What a walk needs.

    Attributes:
        url: the account's.
        held: the URL of a source whose bytes do not come.
        bearer: the header of a user's token.
        sas: a token for everything.
    """

    url: str
    held: str
    bearer: Mapping[str, str]
    sas: str


def _key_info() -> bytes:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    return f"<KeyInfo><Expiry>{tomorrow:%Y-%m-%dT%H:%M:%SZ}</Expiry></KeyInfo>".encode()


def _lease(action: str, **more: str) -> dict[str, str]:
    fields = {"x-ms-lease-action": action}
    return fields | {f"x-ms-{name.replace('_', '-')}": value for name, value in more.items()}


def _leases(send: Send, prefix: str, target: str, *, duration: str, renews: bool = True) -> None:
    """Acquire, renew, change, release and break a lease."""
    acquired = _lease("acquire", lease_duration=duration, proposed_lease_id=A)
    send(f"{prefix}_acquire_lease", "PUT", target, acquired)
    if renews:
        send(f"{prefix}_renew_lease", "PUT", target, _lease("renew", lease_id=A))
    changed = _lease("change", lease_id=A, proposed_lease_id=B)
    send(f"{prefix}_change_lease", "PUT", target, changed)
    send(f"{prefix}_release_lease", "PUT", target, _lease("release", lease_id=B))
    send(None, "PUT", target, acquired)
    send(f"{prefix}_break_lease", "PUT", target, _lease("break"))


def _service(send: Send, *, has_stats: bool = True, properties: bytes) -> None:
    send("service_get_properties", "GET", PROPERTIES)
    send("service_set_properties", "PUT", PROPERTIES, {}, properties)
    if has_stats:
        send("service_get_statistics", "GET", STATS)


def _kept(target: str) -> str:
    return f"/{target}?restype=container"


def blobs(send: Send, given: Given) -> None:
    """The operations of the Blob service."""
    url, held, bearer, sas = given.url, given.held, given.bearer, given.sas
    _service(send, properties=RETENTION)
    send("service_get_user_delegation_key", "POST",
         "/?restype=service&comp=userdelegationkey", bearer, _key_info())  # fmt: skip
    _containers(send)
    _block_blobs(send)
    _append_and_page_blobs(send)
    _copies(send, url)
    pending = send(None, "PUT", "/box/pending", {"x-ms-copy-source": held})["x-ms-copy-id"]
    abort = {"x-ms-copy-action": "abort"}
    send("blob_abort_copy_from_url", "PUT", f"/box/pending?comp=copy&copyid={pending}", abort)
    _states(send, sas)


def _containers(send: Send) -> None:
    send("container_create", "PUT", _kept("box"))
    send("container_get_properties", "GET", _kept("box"))
    send("container_get_metadata", "GET", _kept("box") + "&comp=metadata")
    send("container_set_metadata", "PUT", _kept("box") + "&comp=metadata", {"x-ms-meta-a": "b"})
    send("container_get_access_policy", "GET", _kept("box") + "&comp=acl")
    public = {"x-ms-blob-public-access": "blob"}
    send("container_set_access_policy", "PUT", _kept("box") + "&comp=acl", public)
    for id, target in (("service", "/?"), ("container", "/box?"), ("blob", "/box/b?")):
        query = "restype=account&comp=properties"
        send(f"{id}_get_account_info", "GET", target + query)
    send("service_list_containers_segment", "GET", "/?comp=list")
    _leases(send, "container", _kept("box") + "&comp=lease", duration="60")
    send(None, "PUT", _kept("old"))
    send("container_delete", "DELETE", _kept("old"))


def _block_blobs(send: Send) -> None:
    send("blockblob_upload", "PUT", "/box/b", BLOCK, b"x" * 1024)
    send("blob_download", "GET", "/box/b")
    send("blob_get_properties", "HEAD", "/box/b")
    send("blob_set_http_headers", "PUT", "/box/b?comp=properties")
    send("blob_get_metadata", "GET", "/box/b?comp=metadata")
    send("blob_set_metadata", "PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "b"})
    send("container_list_blob_flat_segment", "GET", "/box?restype=container&comp=list")
    by_folder = "/box?restype=container&comp=list&delimiter=/"
    send("container_list_blob_hierarchy_segment", "GET", by_folder)
    send("blockblob_stage_block", "PUT", "/box/blocks?comp=block&blockid=QQ==", {}, b"block")
    blocks = b"<BlockList><Latest>QQ==</Latest></BlockList>"
    send("blockblob_commit_block_list", "PUT", "/box/blocks?comp=blocklist", {}, blocks)
    send("blockblob_get_block_list", "GET", "/box/blocks?comp=blocklist")
    tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>"
    send("blob_set_tags", "PUT", "/box/b?comp=tags", {}, tags)
    send("blob_get_tags", "GET", "/box/b?comp=tags")
    send("service_filter_blobs", "GET", "/?comp=blobs&where=k%3D'v'")
    found = "/box?restype=container&comp=blobs&where=k%3D'v'"
    send("container_filter_blobs", "GET", found)
    _leases(send, "blob", "/box/b?comp=lease", duration="60")


def _append_and_page_blobs(send: Send) -> None:
    send("appendblob_create", "PUT", "/box/log", APPEND)
    send("appendblob_append_block", "PUT", "/box/log?comp=appendblock", {}, b"line")
    send("pageblob_create", "PUT", "/box/disk", PAGE)
    page = {"x-ms-range": "bytes=0-511", "x-ms-page-write": "update"}
    send("pageblob_upload_pages", "PUT", "/box/disk?comp=page", page, bytes(512))
    taken = send("blob_create_snapshot", "PUT", "/box/disk?comp=snapshot")
    clear = page | {"x-ms-page-write": "clear"}
    send("pageblob_clear_pages", "PUT", "/box/disk?comp=page", clear)
    send("pageblob_get_page_ranges", "GET", "/box/disk?comp=pagelist")
    since = f"/box/disk?comp=pagelist&prevsnapshot={taken['x-ms-snapshot']}"
    send("pageblob_get_page_ranges_diff", "GET", since)
    longer = {"x-ms-blob-content-length": "2048"}
    send("pageblob_resize", "PUT", "/box/disk?comp=properties", longer)
    counted = {"x-ms-sequence-number-action": "increment"}
    send("pageblob_update_sequence_number", "PUT", "/box/disk?comp=properties", counted)


def _copies(send: Send, url: str) -> None:
    source = {"x-ms-copy-source": f"{url}/box/b"}
    sync = source | {"x-ms-requires-sync": "true"}
    send("blob_copy_from_url", "PUT", "/box/copied", sync)
    send("blockblob_put_blob_from_url", "PUT", "/box/put", source | BLOCK)
    send("blockblob_stage_block_from_url", "PUT", "/box/put?comp=block&blockid=QQ==", source)
    send("appendblob_append_block_from_url", "PUT", "/box/log?comp=appendblock", source)
    ranges = {"x-ms-source-range": "bytes=0-511", "x-ms-range": "bytes=0-511"}
    pages = source | ranges | {"x-ms-page-write": "update"}
    send("pageblob_upload_pages_from_url", "PUT", "/box/disk?comp=page", pages)
    send("appendblob_seal", "PUT", "/box/log?comp=seal")
    send("blob_start_copy_from_url", "PUT", "/box/copy", source)
    taken = send(None, "PUT", "/box/disk?comp=snapshot")["x-ms-snapshot"]
    snapshot = {"x-ms-copy-source": f"{url}/box/disk?snapshot={taken}"}
    send("pageblob_copy_incremental", "PUT", "/box/increments?comp=incrementalcopy", snapshot)


def _states(send: Send, sas: str) -> None:
    send("blob_set_tier", "PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"})
    send("blob_delete", "DELETE", "/box/put")
    send("blob_undelete", "PUT", "/box/put?comp=undelete")
    for scope, target in (("service", "/?comp=batch"), ("container", _kept("box") + "&comp=batch")):
        send(None, "PUT", "/box/x", BLOCK)
        part = f"DELETE {{account}}/box/x?{sas} HTTP/1.1\r\n\r\n"
        body = f"--batch\r\nContent-Type: application/http\r\n\r\n{part}\r\n--batch--\r\n"
        send(f"{scope}_submit_batch", "POST", target, BATCH_TYPE, body.encode())


def protected_blobs(send: Send) -> None:
    """The operations on blobs of an account with versions, and retention of all kinds."""
    send(None, "PUT", PROPERTIES, {}, RETENTION)
    send(None, "PUT", _kept("box"))
    first = send(None, "PUT", "/box/b", BLOCK, b"old")["x-ms-version-id"]
    second = send(None, "PUT", "/box/b", BLOCK, b"new")["x-ms-version-id"]
    send(None, "PUT", "/box/b", BLOCK, b"newest")
    send("blob_delete_version", "DELETE", f"/box/b?versionid={first}")
    send(None, "DELETE", f"/box/b?versionid={second}")
    permanent = f"/box/b?versionid={second}&deletetype=permanent"
    send("blob_delete_permanently", "DELETE", permanent)
    until = {"x-ms-immutability-policy-until-date": "Fri, 01 Jan 2100 00:00:00 GMT"}
    send("blob_set_immutability_policy", "PUT", "/box/b?comp=immutabilitypolicies", until)
    send("blob_delete_immutability_policy", "DELETE", "/box/b?comp=immutabilitypolicies")
    hold = {"x-ms-legal-hold": "false"}
    send("blob_set_legal_hold", "PUT", "/box/b?comp=legalhold", hold)
    send(None, "PUT", _kept("old"))
    send(None, "DELETE", _kept("old"))
    version = _version(send(None, "GET", "/?comp=list&include=deleted"))
    named = {"x-ms-deleted-container-name": "old", "x-ms-deleted-container-version": version}
    send("container_restore", "PUT", _kept("old") + "&comp=undelete", named)


def protected_files(send: Send) -> None:
    """The operations on shares of an account that keeps deleted shares."""
    send(None, "PUT", "/docs?restype=share")
    send(None, "DELETE", "/docs?restype=share")
    version = _version(send(None, "GET", "/?comp=list&include=deleted"))
    named = {"x-ms-deleted-share-name": "docs", "x-ms-deleted-share-version": version}
    send("share_restore", "PUT", "/docs?restype=share&comp=undelete", named)


def _version(listed: Answer) -> str:
    return listed.body.decode().partition("<Version>")[2].partition("</Version>")[0]


def queues(send: Send, bearer: Mapping[str, str]) -> None:
    """The operations of the Queue service."""
    _service(send, properties=b"<StorageServiceProperties/>")
    send("service_get_user_delegation_key", "POST",
         "/?restype=service&comp=userdelegationkey", bearer, _key_info())  # fmt: skip
    send("queue_create", "PUT", "/line")
    send("service_get_queues", "GET", "/?comp=list")
    send("queue_get_properties", "GET", "/line?comp=metadata")
    send("queue_set_metadata", "PUT", "/line?comp=metadata", {"x-ms-meta-a": "b"})
    send("queue_get_access_policy", "GET", "/line?comp=acl")
    send("queue_set_access_policy", "PUT", "/line?comp=acl")
    message = b"<QueueMessage><MessageText>text</MessageText></QueueMessage>"
    send("queue_send_message", "POST", "/line/messages", {}, message)
    send("queue_peek_messages", "GET", "/line/messages?peekonly=true")
    got = send("queue_receive_messages", "GET", "/line/messages").body.decode()
    id, receipt = (
        got.partition(f"<{name}>")[2].partition("<")[0] for name in ("MessageId", "PopReceipt")
    )
    updated = f"/line/messages/{id}?visibilitytimeout=30&popreceipt={receipt}"
    receipt = send("queue_update_message", "PUT", updated, {}, message)["x-ms-popreceipt"]
    send("queue_delete_message", "DELETE", f"/line/messages/{id}?popreceipt={receipt}")
    send("queue_clear", "DELETE", "/line/messages")
    send("queue_delete", "DELETE", "/line")


def tables(send: Send) -> None:
    """The operations of the Table service."""
    _service(send, properties=b"<StorageServiceProperties/>")
    send("table_create", "POST", "/Tables", _JSON, b'{"TableName": "facts"}')
    send("table_query", "GET", "/Tables", _JSON)
    send("table_query_single", "GET", "/Tables('facts')", _JSON)
    send("table_get_access_policy", "GET", "/facts?comp=acl")
    send("table_set_access_policy", "PUT", "/facts?comp=acl")
    row, one = (
        json.dumps({"PartitionKey": "p", "RowKey": "r", "n": 1}).encode(),
        "/facts(PartitionKey='p',RowKey='r')",
    )
    send("table_insert_entity", "POST", "/facts", _JSON, row)
    send("table_query_entity_with_partition_and_row_key", "GET", one, _JSON)
    send("table_query_entities", "GET", "/facts()", _JSON)
    send("table_insert_or_replace_entity", "PUT", one, _JSON, row)
    send("table_insert_or_merge_entity", "PATCH", one, _JSON, row)
    guarded = _JSON | {"If-Match": "*"}
    send("table_update_entity", "PUT", one, guarded, row)
    send("table_merge_entity", "PATCH", one, guarded, row)
    send("table_delete_entity", "DELETE", one, guarded)
    send("table_batch", "POST", "/$batch", {"Content-Type": "multipart/mixed; boundary=b"}, _GROUP)
    send("table_delete", "DELETE", "/Tables('facts')", _JSON)


_JSON = {"Accept": "application/json", "Content-Type": "application/json"}
_GROUP = (
    b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
    b"--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    b"POST http://host/devstoreaccount1/facts HTTP/1.1\r\nContent-Type: application/json\r\n"
    b'Accept: application/json\r\n\r\n{"PartitionKey": "p", "RowKey": "g"}\r\n--c--\r\n--b--\r\n'
)


def _file(path: str, query: str = "") -> str:
    return f"/docs/{path}" + (f"?{query}" if query else "")


def files(send: Send, given: Given) -> None:
    """The operations of the File service. Each path has DEPTH names."""
    url, held, bearer = given.url, given.held, given.bearer
    _service(send, has_stats=False, properties=b"<StorageServiceProperties/>")
    send("service_get_user_delegation_key", "POST",
         "/?restype=service&comp=userdelegationkey", bearer, _key_info())  # fmt: skip
    _shares(send)
    for depth in range(1, DEPTH):
        path = "/".join(["d"] * depth)
        made = "directory_create" if depth == DEPTH - 1 else None
        send(made, "PUT", _file(path, "restype=directory"), _SMB)
    folder = "/".join(["d"] * (DEPTH - 1))
    _directories(send, folder)
    _files(send, f"{folder}/f")
    _file_copies(send, url, folder, given.sas)
    pending = send(None, "PUT", _file(f"{folder}/pending"), {"x-ms-copy-source": held})
    aborted = _file(f"{folder}/pending", f"comp=copy&copyid={pending['x-ms-copy-id']}")
    send("file_abort_copy", "PUT", aborted, {"x-ms-copy-action": "abort"})
    for id, method, kind in (
        ("file_create_symbolic_link", "PUT", "symboliclink"),
        ("file_get_symbolic_link", "GET", "symboliclink"),
        ("file_create_hard_link", "PUT", "hardlink"),
    ):
        send(id, method, _file(f"{folder}/f", f"restype={kind}"), REFUSED)
    send("share_create_snapshot", "PUT", "/docs?restype=share&comp=snapshot")
    send(None, "PUT", "/gone?restype=share")
    send("share_delete", "DELETE", "/gone?restype=share")


_SMB = {
    "x-ms-file-attributes": "None",
    "x-ms-file-creation-time": "now",
    "x-ms-file-last-write-time": "now",
    "x-ms-file-permission": "inherit",
}


def _shares(send: Send) -> None:
    share = "/docs?restype=share"
    send("share_create", "PUT", share)
    send("service_list_shares_segment", "GET", "/?comp=list")
    send("share_get_properties", "GET", share)
    send("share_set_properties", "PUT", share + "&comp=properties", {"x-ms-share-quota": "10"})
    send("share_get_metadata", "GET", share + "&comp=metadata")
    send("share_set_metadata", "PUT", share + "&comp=metadata", {"x-ms-meta-a": "b"})
    send("share_get_access_policy", "GET", share + "&comp=acl")
    send("share_set_access_policy", "PUT", share + "&comp=acl")
    send("share_get_statistics", "GET", share + "&comp=stats")
    permission = json.dumps({"permission": "O:BAG:BAD:(A;;FA;;;BA)"}).encode()
    made = send("share_create_permission", "PUT", share + "&comp=filepermission", {}, permission)
    key = {"x-ms-file-permission-key": made["x-ms-file-permission-key"]}
    send("share_get_permission", "GET", share + "&comp=filepermission", key)
    _leases(send, "share", share + "&comp=lease", duration="60")


def _directories(send: Send, folder: str) -> None:
    kind = "restype=directory"
    send("directory_get_properties", "GET", _file(folder, kind))
    send("directory_set_properties", "PUT", _file(folder, kind + "&comp=properties"), _SMB)
    send("directory_get_metadata", "GET", _file(folder, kind + "&comp=metadata"))
    send("directory_set_metadata", "PUT", _file(folder, kind + "&comp=metadata"))
    listed = "directory_list_files_and_directories_segment"
    send(listed, "GET", _file(folder, kind + "&comp=list"))
    send(None, "PUT", _file(f"{folder}/e", kind), _SMB)
    moved = {"x-ms-file-rename-source": f"{{url}}/docs/{folder}/e"}
    send("directory_rename", "PUT", _file(f"{folder}/g", kind + "&comp=rename"), moved)
    send("directory_delete", "DELETE", _file(f"{folder}/g", kind))


def _files(send: Send, path: str) -> None:
    new = _SMB | {"x-ms-type": "file", "x-ms-content-length": "1024"}
    send("file_create", "PUT", _file(path), new)
    span = {"x-ms-range": "bytes=0-1023", "x-ms-write": "update"}
    send("file_upload_range", "PUT", _file(path, "comp=range"), span, b"x" * 1024)
    send("file_download", "GET", _file(path))
    send("file_get_properties", "HEAD", _file(path))
    send("file_set_http_headers", "PUT", _file(path, "comp=properties"), _SMB)
    send("file_get_metadata", "GET", _file(path, "comp=metadata"))
    send("file_set_metadata", "PUT", _file(path, "comp=metadata"))
    send("file_get_range_list", "GET", _file(path, "comp=rangelist"))
    clear = span | {"x-ms-write": "clear"}
    send("file_clear_range", "PUT", _file(path, "comp=range"), clear)
    _leases(send, "file", _file(path, "comp=lease"), duration="-1", renews=False)
    send("file_list_handles", "GET", _file(path, "comp=listhandles"))
    every = {"x-ms-handle-id": "*"}
    send("file_force_close_handles", "PUT", _file(path, "comp=forceclosehandles"), every)


def _file_copies(send: Send, url: str, folder: str, sas: str) -> None:
    source = {"x-ms-copy-source": f"{url}/docs/{folder}/f"}
    send("file_start_copy", "PUT", _file(f"{folder}/copy"), source)
    ranges = {"x-ms-source-range": "bytes=0-511", "x-ms-range": "bytes=0-511"}
    signed = {"x-ms-copy-source": f"{url}/docs/{folder}/f?{sas}"}
    update = signed | ranges | {"x-ms-write": "update"}
    send("file_upload_range_from_url", "PUT", _file(f"{folder}/f", "comp=range"), update)
    moved = {"x-ms-file-rename-source": f"{{url}}/docs/{folder}/copy"}
    send("file_rename", "PUT", _file(f"{folder}/moved", "comp=rename"), moved)
    send("file_delete", "DELETE", _file(f"{folder}/moved"))
