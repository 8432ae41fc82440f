"""Random writers in an account with soft delete: after a kill, deleted blobs can be restored.

Lives here: the additions to workload.py for a retention. Must not live here: kills (rounds.py).
Source: "Soft delete for blobs", "Undelete Blob".
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.durability.workload import ABSENT, Blob, Expected, Worker, found_blob

RETENTION = (
    b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
    b"</DeleteRetentionPolicy></StorageServiceProperties>"
)


def retain(client: Client) -> None:
    """Enable the retention, and create the container of the workers."""
    target = "/?restype=service&comp=properties"
    assert client.put(target, body=RETENTION).status == 202
    assert client.put("/durable?restype=container").status == 201


@dataclass(slots=True)
class RetainedWorker(Worker):
    """A worker that sometimes undeletes its deleted blobs, and all of them after each kill.

    `deleted` has the states of its deleted blobs, by name.
    """

    deleted: dict[str, Expected] = field(default_factory=dict)

    def _one(self, client: Client, blob: Blob, rng: random.Random) -> None:
        if blob.name in self.deleted and rng.random() < 0.5:
            self._undelete(client, blob)
        else:
            Worker._one(self, client, blob, rng)

    def _undelete(self, client: Client, blob: Blob) -> None:
        after, target = self.deleted[blob.name], self._target(blob, "?comp=undelete")
        self._change(blob, after, 200, lambda: client.put(target))

    def _change(
        self, blob: Blob, after: Expected, status: int, send: Callable[[], Answer]
    ) -> Answer:
        before = blob.known
        answer = Worker._change(self, blob, after, status, send)
        self._note(blob, before)
        return answer

    def _note(self, blob: Blob, before: Expected) -> None:
        """Note the new state of a blob that was `before`. A lease does not come back."""
        if blob.known != ABSENT:
            self.deleted.pop(blob.name, None)
        elif before != ABSENT:
            self.deleted[blob.name] = replace(before, lease_id="")

    def verify(self, client: Client) -> list[str]:
        """Verify as Worker does; then undelete all deleted blobs and compare them."""
        before = {blob.name: blob.known for blob in self.blobs}
        lost = Worker.verify(self, client)
        for blob in self.blobs:
            self._note(blob, before[blob.name])
            if blob.name not in self.deleted:
                continue
            wanted = self.deleted[blob.name]
            self._undelete(client, blob)
            found = found_blob(client, self._target(blob), blob)
            if found != wanted:
                lost.append(f"{blob.name}: undeleted {found}, deleted {wanted}")
        return lost
