"""Random writers in an account that keeps what is deleted: after a kill, it comes back whole.

Lives here: what a retention adds to workload.py. Must not live here: kills (rounds.py). Source:
"Soft delete for blobs", "Undelete Blob".
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
    """Switch the retention on, and make the container that is worked in."""
    target = "/?restype=service&comp=properties"
    assert client.put(target, body=RETENTION).status == 202
    assert client.put("/durable?restype=container").status == 201


@dataclass(slots=True)
class RetainedWorker(Worker):
    """A worker that undeletes what it has deleted, now and then; after each kill, all of it.

    `deleted` are the states of its blobs that are deleted, by name.
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
        """Note what became of a blob that was `before`. A lease does not come back."""
        if blob.known != ABSENT:
            self.deleted.pop(blob.name, None)
        elif before != ABSENT:
            self.deleted[blob.name] = replace(before, lease_id="")

    def verify(self, client: Client) -> list[str]:
        """As Worker.verify; then all that is deleted is undeleted, and must be what it was."""
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
