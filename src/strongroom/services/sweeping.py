"""Sweeping: dropping what no head, snapshot or upload names any more, page by page.

Lives here: the work of the jobs SWEEP_BLOB, SWEEP_CONTAINER and EXPIRE_UPLOAD. Must not live here:
when they run (sweeper.py), copies (copy_jobs.py). Each function is idempotent: a crash at any point
leaves the job, and the job done again finds only what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from strongroom.engines.base import (
    Commit,
    ContentMissing,
    Key,
    Partition,
    Position,
    Record,
    Ref,
    Step,
    Write,
)
from strongroom.services.blobs import read_list
from strongroom.services.changes import UPLOAD_LIFETIME_TICKS, BlobChange
from strongroom.services.runner import Services
from strongroom.store import keys, records
from strongroom.store.records import BlobRecord, Inline, Job, JobKind, Listed, Stored, Upload

# What one commit of background work changes at most: requests wait for it.
PAGE: Final = 128


class Live:
    """What a blob's head and snapshots name: contents, and the numbers of block lists."""

    def __init__(self) -> None:
        self.contents: set[int] = set()
        self.lists: set[int] = set()

    async def add(self, services: Services, partition: Partition, blob: BlobRecord) -> None:
        """Everything that one head or snapshot names."""
        body = blob.body
        if isinstance(body, Stored):
            self.contents.add(body.content)
        elif isinstance(body, Listed) and body.number not in self.lists:
            self.lists.add(body.number)
            self.contents.update(await contents_of(services, partition, body))


async def contents_of(services: Services, partition: Partition, body: Stored | Listed) -> list[int]:
    """The contents that make a body, its block list's last; of a list that is gone, nothing."""
    if isinstance(body, Stored):
        return [body.content]
    try:
        blocks = await read_list(services, partition, body)
    except ContentMissing:
        return []
    found = list(dict.fromkeys(block.content for block in blocks))
    return found if body.list_content is None else [*found, body.list_content]


async def sweep_blob(services: Services, job: Job, stamp: int) -> None:
    """Drop the retired bodies of a blob, and the staged blocks of uploads that have ended.

    Arguments:
        stamp: the job's: what was given up or staged later has a job of its own.
    """
    partition = keys.blob(job.generation, job.blob)
    upload, live = await _survey(services, partition)
    await _sweep_retired(services, partition, live)
    await _sweep_staged(services, partition, upload, live, stamp)


async def _survey(services: Services, partition: Partition) -> tuple[Upload | None, Live]:
    """The upload in progress, and what the head and the snapshots name."""
    live = Live()
    refs = [Ref(partition, keys.HEAD_KEY), Ref(partition, keys.UPLOAD_KEY)]
    head, upload = await services.store.read(refs)
    blob = records.BLOB.of(head)
    if blob is not None:
        await live.add(services, partition, blob)
    first, until = keys.snapshot_range()
    while True:
        found = await services.store.read_range(partition, False, first, until, PAGE)
        for item in found:
            await live.add(services, partition, records.BLOB.decode(item.value))
        if len(found) < PAGE:
            return records.UPLOAD.of(upload), live
        first = found[-1].name + b"\0"


async def _sweep_retired(services: Services, partition: Partition, live: Live) -> None:
    first, until = keys.retired_range()
    while True:
        found = await services.store.read_range(partition, True, first, until, PAGE)
        for item in found:
            bodies = records.RETIRED.decode(item.value).bodies
            for body in bodies:
                await _drop_body(services, partition, body, live)
            await _commit(services, partition, [Write(Key(True, item.name), None)], [])
        if len(found) < PAGE:
            return
        first = found[-1].name + b"\0"


async def _drop_body(
    services: Services, partition: Partition, body: Stored | Listed, live: Live
) -> None:
    dead = [
        content
        for content in await contents_of(services, partition, body)
        if content not in live.contents
    ]
    # The list goes with the last page: until then a repetition finds what is left by it.
    writes = []
    if isinstance(body, Listed) and body.list_content is None and body.number not in live.lists:
        writes.append(Write(keys.block_list(body.number), None))
    pages = list(_pages(dead))
    for page in pages[:-1]:
        await _commit(services, partition, [], page)
    await _commit(services, partition, writes, pages[-1] if pages else [])


async def _sweep_staged(
    services: Services, partition: Partition, upload: Upload | None, live: Live, stamp: int
) -> None:
    current = None if upload is None else upload.number
    first, until = keys.staged_before(stamp + 1)
    while True:
        found = await services.store.read_range(partition, True, first, until, PAGE)
        writes, drops = [], []
        for item in found:
            if keys.staged_upload(item.name) == current:
                continue
            writes.append(Write(Key(True, item.name), None))
            content = records.STAGED.decode(item.value).content
            if content not in live.contents:
                drops.append(content)
        await _commit(services, partition, writes, drops)
        if len(found) < PAGE:
            return
        first = found[-1].name + b"\0"


def _pages(contents: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(contents), PAGE):
        yield list(contents[start : start + PAGE])


async def _commit(
    services: Services, partition: Partition, writes: Iterable[Write], drops: Iterable[int]
) -> None:
    step = Step(partition, tuple(writes), drop=tuple(drops))
    if step.writes or step.drop:
        await commit_steps(services, (step,))


async def commit_steps(services: Services, steps: tuple[Step, ...]) -> None:
    """Commit steps that depend on nothing: what they remove is dead and stays so."""

    def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
        return Commit(None, steps)

    await services.store.update(steps[0].partition, (), decide)


async def sweep_container(services: Services, job: Job) -> bool:
    """Remove everything that a deleted container held.

    Returns: False when somebody still reads from it: to be done later.
    """
    account, _, name = job.token.partition("/")
    (place,) = await services.store.read([keys.container(account, name)])
    container = records.CONTAINER.of(place)
    if container is not None and container.generation == job.generation:
        # The container's deletion was not committed: it lives.
        return True
    keyspace = keys.blobs(job.generation)
    while True:
        start = Position(b"", b"")
        page = await services.store.scan(keyspace, start, None, PAGE)
        names = dict.fromkeys(face.partition for face in page.faces)
        if any(services.readers.snapshot(Partition(keyspace, one)) for one in names):
            return False
        batch = _Batch(services)
        for one in names:
            await _clear_partition(services, Partition(keyspace, one), batch)
        await batch.flush()
        if not page.faces and page.resume is None:
            return True


class _Batch:
    """Removals in many partitions, committed together: one sync for a page of small blobs."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._steps: list[Step] = []
        self._size = 0

    async def add(self, partition: Partition, writes: list[Write], drops: list[int]) -> None:
        """Remove keys and contents of one partition, at most PAGE of each."""
        if self._size + len(writes) + len(drops) > 2 * PAGE:
            await self.flush()
        self._steps.append(Step(partition, tuple(writes), drop=tuple(drops)))
        self._size += len(writes) + len(drops)

    async def flush(self) -> None:
        """Commit what was added."""
        if self._steps:
            await commit_steps(self._services, tuple(self._steps))
        self._steps, self._size = [], 0


async def _clear_partition(services: Services, partition: Partition, batch: _Batch) -> None:
    """Remove one blob whole: contents first, then hidden records, then what a scan finds."""
    drops = await _contents_of_lists(services, partition)
    for page in _pages(drops):
        await batch.add(partition, [], page)
    first = b""
    while True:
        hidden = await services.store.read_range(partition, True, first, None, PAGE)
        staged = [
            records.STAGED.decode(item.value).content
            for item in hidden
            if item.name[:1] == keys.STAGED
        ]
        writes = [Write(Key(True, item.name), None) for item in hidden]
        await batch.add(partition, writes, staged)
        await _forget_expiry(
            services, batch, [item.value for item in hidden if _is_upload(item.name)]
        )
        if len(hidden) < PAGE:
            break
        first = hidden[-1].name + b"\0"
    first = b""
    while True:
        faces = await services.store.read_range(partition, False, first, None, PAGE)
        await batch.add(partition, [Write(Key(False, item.name), None) for item in faces], [])
        if len(faces) < PAGE:
            return
        first = faces[-1].name + b"\0"


def _is_upload(name: bytes) -> bool:
    return name == keys.UPLOAD_KEY.name


async def _forget_expiry(services: Services, batch: _Batch, uploads: list[bytes]) -> None:
    for data in uploads:
        upload = records.UPLOAD.decode(data)
        due = upload.number + UPLOAD_LIFETIME_TICKS
        ref = keys.job(due, upload.number, JobKind.EXPIRE_UPLOAD)
        await batch.add(ref.partition, [Write(ref.key, None)], [])


async def _contents_of_lists(services: Services, partition: Partition) -> list[int]:
    """The contents of heads, snapshots and retired bodies of one blob, each once."""
    found: dict[int, None] = {}
    bodies: list[Stored | Listed] = []
    first = b""
    while True:
        faces = await services.store.read_range(partition, False, first, None, PAGE)
        for item in faces:
            body = records.BLOB.decode(item.value).body
            if body is not None and not isinstance(body, Inline):
                bodies.append(body)
        if len(faces) < PAGE:
            break
        first = faces[-1].name + b"\0"
    first, until = keys.retired_range()
    for item in await services.store.read_range(partition, True, first, until, PAGE):
        bodies += records.RETIRED.decode(item.value).bodies
    for body in dict.fromkeys(bodies):
        found.update(dict.fromkeys(await contents_of(services, partition, body)))
    return list(found)


async def expire_upload(services: Services, job: Job) -> None:
    """End an upload that nobody has touched for a week; one that was is looked at again later."""
    partition = keys.blob(job.generation, job.blob)
    refs = [Ref(partition, keys.HEAD_KEY), Ref(partition, keys.UPLOAD_KEY)]

    def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
        head, upload = records.BLOB.of(found[0]), records.UPLOAD.of(found[1])
        if upload is None or str(upload.number) != job.token:
            return Commit(None)
        due = upload.touched + UPLOAD_LIFETIME_TICKS
        if due > stamp:
            ref = keys.job(due, upload.number, JobKind.EXPIRE_UPLOAD)
            return Commit(None, (Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),)),))
        change = BlobChange(partition, job.generation, job.blob, stamp, head, upload)
        if head is not None and not head.committed:
            change.put(keys.HEAD_KEY, None)
        change.end_upload()
        return Commit(None, change.steps())

    await services.store.update(partition, refs, decide)
    services.work.set()
