"""The expected result of each step of node/appends.mjs. Source: "Append Block", "Append Blob
Seal"."""

from __future__ import annotations

from tests.interop.javascript_steps import Refusal, Steps

APPENDS: Steps = {
    "create": 201,
    "create again": False,
    "append": [201, "0", 1],
    "append at the end": ["5", 2],
    "append elsewhere": Refusal(412, "AppendPositionConditionNotMet"),
    "append too much": Refusal(412, "MaxBlobSizeConditionNotMet"),
    "read": ["firstsecond", "AppendBlob", 2],
    "seal": [200, True],
    "append to a sealed one": Refusal(409, "BlobIsSealed"),
    "properties": {"blobType": "AppendBlob", "blobCommittedBlockCount": 2, "isSealed": True},
    "copy": ["11", 3, "firstsecondthird"],
    "list": [["copy", "AppendBlob"], ["log", "AppendBlob"]],
}
