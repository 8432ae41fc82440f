"""The expected result of each step of node/versions.mjs.

Source: "Blob versioning", "Soft delete for blobs", "Set Blob Immutability Policy", "Set Blob Tags".
"""

from __future__ import annotations

from strongroom.account_switches import Switches
from tests.interop.javascript_steps import Refusal, Steps

SWITCHES = Switches(versioning=True, immutability=True)
HELD, IMMUTABLE = "BlobImmutableDueToLegalHold", "BlobImmutableDueToPolicy"

VERSIONS: Steps = {
    "two versions": True,
    "list": [["b", 0, False, False], ["b", 1, True, False]],
    "list plainly": 1,
    "read the old one": ["one", True, False],
    "properties of the new one": [True, True],
    "promote": "one",
    "delete the current one by its id": Refusal(403, "OperationNotAllowedOnRootBlob"),
    "delete": 202,
    "it is gone": Refusal(404, "BlobNotFound"),
    "list what is left": [["b", number, False, False] for number in range(3)],
    "names with versions only": [["b", True]],
    "delete a version": 202,
    "list the deleted": [["b", number, False, number == 0] for number in range(3)],
    "undelete": 200,
    "it is back": "one",
    "tags of versions": ["1", "2"],
    "set tags": [204, {"turn": "3", "a key": "a value"}],
    "read if tags": "three",
    "write if other tags": Refusal(412, "ConditionNotMet"),
    "find by tags": [["b", {"turn": "3"}]],
    "find in the account": ["versions"],
    "find nothing": 0,
    "set a policy": [200, "2100-01-02T03:04:05.000Z", "unlocked"],
    "set a hold": True,
    "protection": {
        "immutabilityPolicyExpiresOn": "2100-01-02T03:04:05.000Z",
        "immutabilityPolicyMode": "unlocked",
        "legalHold": True,
    },
    "change what is held": Refusal(409, HELD),
    "overwrite it": 201,
    "delete the version that is held": Refusal(409, HELD),
    "clear the hold": False,
    "delete the version with a policy": Refusal(409, IMMUTABLE),
    "delete the policy": 200,
    "delete the version": 202,
    "upload with a hold": [201, True],
    "delete the container": Refusal(409, "ContainerProtectedFromDeletion"),
}
