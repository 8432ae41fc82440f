"""The gate of a blob: Put Blocks at other gateways wait while a list is to be committed.

Lives here: when a list closes the gate, who waits at it, and for how long. Must not live here: the
turn of a list among the requests of its own gateway (decisions/precedence.py).

A list is refused when a block was staged since it read the blocks, and reads again. Requests of its
own gateway give way to it at once. Those of others cannot see it, so it might be refused for ever.
After a few refusals it therefore writes into the upload that others are to wait. Its commit removes
that with the upload. A gateway that dies leaves a gate which ends by itself.

Correctness does not depend on a gate: whoever passes it is judged at its commit as always.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from strongroom.engines.base import EngineError, Partition, Ref
from strongroom.engines.endings import to_its_end
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.background_changes import change_in_background
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import Upload
from strongroom.store.core import keys
from strongroom.values import TICKS_PER_S, Purpose

GATE_TICKS: Final = 5 * TICKS_PER_S
REFUSALS_BEFORE_GATE: Final = 2


def closed(upload: Upload, gateway: int, now: int) -> Upload | None:
    """Return the upload with a gate that `gateway` has closed; None if a gate is closed already."""
    if now < upload.gate_until:
        return None
    return msgspec.structs.replace(upload, gate_until=now + GATE_TICKS, gate_by=gateway)


def opened(upload: Upload, gateway: int) -> Upload | None:
    """Return the upload without the gate that `gateway` has closed; None if there is none."""
    if not upload.gate_until or upload.gate_by != gateway:
        return None
    return msgspec.structs.replace(upload, gate_until=0, gate_by=0)


def waiting_ticks(upload: Upload, gateway: int, now: int) -> int:
    """Return how long a Put Block at `gateway` has to wait at most; 0 = not at all."""
    return 0 if upload.gate_by == gateway else max(0, upload.gate_until - now)


class ListTurn:
    """The turn of one Put Block List over all gateways.

    Arguments:
        call: the request, which is authorized anew at each commit.
    """

    def __init__(self, services: Services, call: Call[Any]) -> None:
        self._services = services
        self._call = call
        self._gateway = services.store.gateways.number
        self._refusals = 0
        self._has_closed = False

    async def note_refusal(self) -> None:
        """Note that something was staged since the list was read. After several times the gate is
        closed. Raises: StorageError: the list would be refused now."""
        self._refusals += 1
        if self._refusals < REFUSALS_BEFORE_GATE or self._services.store.gateways.is_alone:
            return
        self._has_closed = True
        # Also if the request ends meanwhile: `give_up` must come after it.
        await to_its_end(changing.change_blob(self._services, self._call, self._close))

    def _close(self, state: BlobState, change: BlobChange) -> None:
        upload = state.upload and closed(state.upload, self._gateway, state.now)
        if upload is not None:
            change.put_upload(upload)

    async def give_up(self) -> None:
        """Open the gate, because the list will not be committed. While the engine does not serve,
        the gate ends by itself."""
        if not self._has_closed:
            return
        generation, name = generation_of(self._call), self._call.target.blob
        with suppress(EngineError):
            await change_in_background(
                self._services, generation, name, self._open, purpose=Purpose.FREEING
            )

    def _open(self, state: BlobState, change: BlobChange) -> None:
        upload = state.upload and opened(state.upload, self._gateway)
        if upload is not None:
            change.put_upload(upload)


async def read_upload(services: Services, partition: Partition) -> Upload | None:
    """Return the upload, after waiting at its gate. Only the first gate that is met is waited at,
    so that a request which stages also gets its turn."""
    ref, store = Ref(partition, keys.UPLOAD_KEY), services.store
    met = 0
    while True:
        (record,) = await store.read([ref])
        upload = blob_records.UPLOAD.of(record)
        if record is None or upload is None or not upload.gate_until:
            return upload
        met = met or upload.gate_until
        left = waiting_ticks(upload, store.gateways.number, await store.now())
        if upload.gate_until != met or not left or services.waiting.is_stopping:
            return upload
        await store.wait(ref, record.version, (left + 1) / TICKS_PER_S)
