"""The expected result of each step of the JavaScript scripts: a table for each script.

Source: the pages of the operations; reference of conditions and leases. Values are those that the
SDK returns, so names of metadata are in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal by the service: HTTP status and error code."""

    status: int
    code: str | None


Outcome = Any
Steps = Mapping[str, Outcome]

CONTAINERS: Steps = {
    "create": 201,
    "create again": Refusal(409, "ContainerAlreadyExists"),
    "createIfNotExists": False,
    "exists": True,
    "exists not": False,
    "bad name": Refusal(400, "InvalidResourceName"),
    "properties": {
        "metadata": {"colour": "blue"},
        "leaseState": "available",
        "leaseStatus": "unlocked",
        "access": None,
        "hasLegalHold": False,
    },
    "set metadata": [200, True, {"size": "large"}],
    "set access policy": 200,
    "get access policy": {
        "blobPublicAccess": "blob",
        "signedIdentifiers": [
            {
                "accessPolicy": {
                    "permissions": "rl",
                    "expiresOn": "2040-01-02T03:04:05.678Z",
                    "startsOn": "2020-01-02T03:04:05.678Z",
                },
                "id": "readers <&>",
            }
        ],
    },
    "anonymous read": "public",
    "anonymous list, blobs public": Refusal(401, "NoAuthenticationInformation"),
    "anonymous list, container public": 1,
    "anonymous write": Refusal(401, "NoAuthenticationInformation"),
    "anonymous read, private": Refusal(401, "NoAuthenticationInformation"),
    "policies are gone": [],
    "list": [
        ["first", {"size": "large"}, None, "available"],
        ["second", {"n": "2"}, "container", "available"],
        ["third", "", None, "available"],
    ],
    "list by page": [["first", "second"], ["third"]],
    "list by prefix": ["second"],
    "delete": 202,
    "delete again": Refusal(404, "ContainerNotFound"),
    "deleteIfExists": False,
    "create anew": 201,
    "it is empty": False,
}

BLOBS: Steps = {
    "upload": [201, True, True],
    "download": {
        "status": 200,
        "text": "hello, wörld",
        "contentType": "text/plain; charset=utf-8",
        "contentLength": 13,
        "blobType": "BlockBlob",
        "metadata": {"author": "me"},
    },
    "download a range": [206, "ell", "bytes 1-3/13"],
    "download the rest": "wörld",
    "download beyond the end": Refusal(416, "InvalidRange"),
    "range digests": ["XUFAKrxLKna5cZ2REBfFkg==", 8, "hello", "hello"],
    "properties": {
        "contentLength": 13,
        "contentType": "text/plain; charset=utf-8",
        "contentLanguage": "de",
        "contentEncoding": "identity",
        "contentDisposition": 'attachment; filename="x.txt"',
        "cacheControl": "no-cache",
        "accessTier": "Hot",
        "leaseState": "available",
        "isServerEncrypted": True,
        "acceptRanges": "bytes",
        "md5": "Bf14adV/W145/jPrubQ2MQ==",
    },
    "set headers": ["text/html", None, None],
    "set metadata": {"other": "thing"},
    "bad metadata name": Refusal(400, "InvalidMetadata"),
    "wrong md5": Refusal(400, "Md5Mismatch"),
    "unchanged": "hello, wörld",
    "empty": [0, ""],
    "upload a file in parallel blocks": 201,
    "its blocks": [24, 0, 24117253],
    "download to a buffer in parallel": True,
    "download to a file": True,
    "upload a stream": [201, True],
    "upload at once": [201, True],
    "a stream of little pieces": True,
    "stage": [
        [
            {"name": "YmxvY2stMQ==", "size": 3},
            {"name": "YmxvY2stMg==", "size": 3},
            {"name": "YmxvY2stMw==", "size": 3},
        ],
        False,
    ],
    "commit some": [201, "<3><1>", 2, 0],
    "commit what is missing": Refusal(400, "InvalidBlockList"),
    "block ids of other lengths": Refusal(400, "InvalidBlobOrBlock"),
    "odd names": [11],
    "not served yet": Refusal(501, "NotImplemented"),
    "delete": 202,
    "delete again": Refusal(404, "BlobNotFound"),
    "deleteIfExists": False,
    "download what is gone": Refusal(404, "BlobNotFound"),
}

CONDITIONS: Steps = {
    "create only, over another": Refusal(409, "BlobAlreadyExists"),
    "create only, new": 201,
    "replace only, missing": Refusal(412, "ConditionNotMet"),
    "if match": [201, True],
    "stale if match": Refusal(412, "ConditionNotMet"),
    "the second stands": "two",
    "read if match, stale": Refusal(412, "ConditionNotMet"),
    "read if none match": Refusal(304, "ConditionNotMet"),
    "properties if none match": Refusal(304, "ConditionNotMet"),
    "read if none match, changed": "two",
    "read if modified since": Refusal(304, "ConditionNotMet"),
    "read if unmodified since": Refusal(412, "ConditionNotMet"),
    "write if unmodified since": Refusal(412, "ConditionNotMet"),
    "write if modified since": Refusal(412, "ConditionNotMet"),
    "metadata, stale": Refusal(412, "ConditionNotMet"),
    "headers, stale": Refusal(412, "ConditionNotMet"),
    "snapshot, stale": Refusal(412, "ConditionNotMet"),
    "block list, stale": Refusal(412, "ConditionNotMet"),
    "lease, stale": Refusal(412, "ConditionNotMet"),
    "delete, stale": Refusal(412, "ConditionNotMet"),
    "of many writers one wins": [1, 15],
    "delete, matching": 202,
    "container metadata if modified since": Refusal(412, "ConditionNotMet"),
    "container delete if unmodified since": Refusal(412, "ConditionNotMet"),
    "container delete if modified since": 202,
}

LEASES: Steps = {
    "too short": Refusal(400, "InvalidHeaderValue"),
    "acquire": [201, "11111111-2222-3333-4444-555555555555", True],
    "state": ["leased", "locked", "fixed"],
    "acquire by another": Refusal(409, "LeaseAlreadyPresent"),
    "acquire again": 201,
    "infinite": ["leased", "locked", "infinite"],
    "write without": Refusal(412, "LeaseIdMissing"),
    "write with another": Refusal(412, "LeaseIdMismatchWithBlobOperation"),
    "write with": 201,
    "read without": 200,
    "read with another": Refusal(412, "LeaseIdMismatchWithBlobOperation"),
    "delete without": Refusal(412, "LeaseIdMissing"),
    "renew": 200,
    "renew by another": Refusal(409, "LeaseIdMismatchWithLeaseOperation"),
    "change": [200, "99999999-8888-7777-6666-555555555555", "99999999-8888-7777-6666-555555555555"],
    "release by the old id": Refusal(409, "LeaseIdMismatchWithLeaseOperation"),
    "break": [202, True],
    "breaking": ["breaking", "locked", None],
    "acquire while breaking": Refusal(409, "LeaseAlreadyPresent"),
    "break at once": [202, 0],
    "broken": ["broken", "unlocked", None],
    "renew when broken": Refusal(409, "LeaseIsBrokenAndCannotBeRenewed"),
    "acquire when broken": 201,
    "release": 200,
    "released": ["available", "unlocked", None],
    "write with a released id": Refusal(412, "LeaseNotPresentWithBlobOperation"),
    "break what is free": Refusal(409, "LeaseNotPresentWithLeaseOperation"),
    "lease what is missing": Refusal(404, "BlobNotFound"),
    "container acquire": 201,
    "container state": ["leased", "locked", "fixed"],
    "write below it": 201,
    "container delete without": Refusal(412, "LeaseIdMissing"),
    "container renew": 200,
    "container break": 202,
    "container acquire again": 201,
    "container delete with": 202,
}

COPIES: Steps = {
    "snapshot": [201, "first"],
    "base": "second",
    "snapshot with metadata": {"n": "2"},
    "write to a snapshot": Refusal(400, "InvalidQueryParameterValue"),
    "list snapshots": [True, True, False],
    "delete with snapshots": Refusal(409, "SnapshotsPresent"),
    "small copy": ["success", "success", "6/6", {"copied": "yes"}, "second"],
    "copy of a snapshot": ["first", {"n": "1"}, "a/b"],
    "nothing to abort": Refusal(409, "NoPendingCopyOperation"),
    "copy of what is missing": Refusal(404, "CannotVerifyCopySource"),
    "copy with a stale source etag": Refusal(412, "SourceConditionNotMet"),
    "copy over, create only": Refusal(409, "BlobAlreadyExists"),
    "copy while waiting": [202, "success", "second"],
    "large copy": ["success", "success", "41943040/41943040", True, 10],
    "abort": True,
    "delete snapshots only": [True, False],
    "delete all": 202,
}

LISTING: Steps = {
    "order": [23, True],
    "pages": [7, 7, 7, 2],
    "go on from a token": [20, ["c/5", "top", "zürich"]],
    "prefix": ["b/0", "b/1", "b/2", "b/3", "b/4", "b/5"],
    "top": [[["a/", "b/", "c/"], ["Zebra", "a", "top", "zürich"]]],
    "top by page": [[["a/"], ["Zebra", "a"]], [["b/", "c/"], ["top"]], [[], ["zürich"]]],
    "below a": [[["a/deep/"], ["a/0", "a/1", "a/2", "a/3", "a/4", "a/5"]]],
    "properties": {
        "name": "top",
        "metadata": {"name": "n"},
        "contentLength": 3,
        "contentType": "application/octet-stream",
        "blobType": "BlockBlob",
        "leaseState": "available",
        "accessTier": "Hot",
    },
    "uncommitted": [[], ["unfinished"]],
    "of what is missing": Refusal(404, "ContainerNotFound"),
}

_TWO: Outcome = [202, 2, 0, [[202, None], [202, None]]]
_ONE_OF_TWO: Outcome = [202, 1, 1, [[404, "BlobNotFound"], [202, None]]]
BATCHES: Steps = {
    "delete": [[202, 3, 0, [[202, None]] * 3], ["kept"]],
    "delete of two containers": [_TWO, []],
    "delete what is not there": _ONE_OF_TWO,
    "delete in the container": _TWO,
    "delete of another container": Refusal(400, "InvalidInput"),
    "it stays": ["stays"],
    "set tiers": [[202, 2, 0, [[200, None], [200, None]]], ["Cool", "Cool"]],
    "one tier for each": [202, 2, 0, [[200, None], [200, None]]],
    "read what is archived": Refusal(409, "BlobArchived"),
    "with conditions": [
        [202, 1, 1, [[412, "ConditionNotMet"], [202, None]]],
        ["cool", "kept"],
    ],
    "with a token": [202, 1, 1, [[202, None], [404, "BlobNotFound"]]],
    "with another key": [202, 0, 1, [[403, "AuthenticationFailed"]]],
    "by a stranger": Refusal(403, "AuthenticationFailed"),
}

SIGNATURES: Steps = {
    "account": [["made-with-sas", "signed"], "secret"],
    "account without the resource type": Refusal(403, "AuthorizationResourceTypeMismatch"),
    "account without the permission": Refusal(403, "AuthorizationPermissionMismatch"),
    "container": ["secret", 1],
    "container without the permission": Refusal(403, "AuthorizationPermissionMismatch"),
    "container expired": Refusal(403, "AuthenticationFailed"),
    "container not yet": Refusal(403, "AuthenticationFailed"),
    "of another container": Refusal(403, "AuthenticationFailed"),
    "blob": "secret",
    "blob written": 201,
    "blob created only": [201, 403],
    "of another blob": Refusal(403, "AuthenticationFailed"),
    "tampered": Refusal(403, "AuthenticationFailed"),
    "https only": Refusal(403, "AuthorizationProtocolMismatch"),
    "from here": "secret",
    "from elsewhere": Refusal(403, "AuthorizationSourceIPMismatch"),
    "headers of the answer": ["text/x-override", "no-store"],
    "of a snapshot": ["secret", 403],
    "policy not there": Refusal(403, "AuthenticationFailed"),
    "policy": "secret",
    "policy changed": Refusal(403, "AuthorizationPermissionMismatch"),
    "policy revoked": Refusal(403, "AuthenticationFailed"),
}

ACCOUNT: Steps = {
    "account": ["string", "string"],
    "set properties": 202,
    "get properties": {
        "cors": [
            {
                "allowedOrigins": "https://example.org,http://*.example.com",
                "allowedMethods": "GET,PUT",
                "allowedHeaders": "x-ms-meta-*,x-ms-blob-type",
                "exposedHeaders": "x-ms-meta-*",
                "maxAgeInSeconds": 200,
            }
        ],
        "defaultServiceVersion": "2021-12-02",
        "hourMetrics": {
            "version": "1.0",
            "enabled": True,
            "includeAPIs": True,
            "retentionPolicy": {"enabled": True, "days": 7},
        },
        "blobAnalyticsLogging": {
            "version": "1.0",
            "deleteProperty": True,
            "read": False,
            "write": True,
            "retentionPolicy": {"enabled": True, "days": 7},
        },
    },
    "what is not given stays": [1, "2020-10-02"],
    "preflight": [200, "https://example.org", "200"],
    "preflight of a stranger": [403, None, None],
    "bad properties": Refusal(400, "InvalidXmlNodeValue"),
    "rules removed": [],
    "a key that nobody can ask for by key": Refusal(403, "AuthenticationFailed"),
}
