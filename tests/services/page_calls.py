"""Page blob operations on services, as requests would make them, and the doctor's findings.

Must not live here: tests.
"""

from __future__ import annotations

from typing import Any

from strongroom.auth.request import Service
from strongroom.operations.blob import page
from strongroom.semantics.blob.pages import SequenceAction
from strongroom.services.blob.copies.incremental import CopyIncrementally
from strongroom.services.blob.types.pages.ranges import GetPageRanges, GetPageRangesDiff
from strongroom.services.blob.types.pages.writing import PutPage, PutPageBlob, SetPageProperties
from strongroom.services.core.copies.sources import CopySources, LocalSource
from strongroom.services.core.runner import Services
from strongroom.store.integrity import Integrity
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT
from tests.services.queue_calls import MemorySnapshot
from tests.services.service_engine import ServiceEngine

RESIZE = page.OPERATIONS[-2]
RANGES = page.GET_PAGE_RANGES

Ranges = list[tuple[int, int, bool]]


async def create(on: Services, name: str, size_bytes: int) -> None:
    await do.run(on, page.PUT_PAGE_BLOB, name, PutPageBlob(size_bytes))


async def write(on: Services, name: str, offset: int, data: bytes) -> None:
    await do.run(on, page.PUT_PAGE, name, PutPage((offset, len(data))), data)


async def clear(on: Services, name: str, offset: int, length: int) -> None:
    await do.run(on, page.CLEAR_PAGES, name, PutPage((offset, length)))


async def resize(on: Services, name: str, size_bytes: int) -> None:
    await do.run(on, RESIZE, name, SetPageProperties(size_bytes=size_bytes))


async def increment(on: Services, name: str) -> int:
    given = SetPageProperties(sequence=(SequenceAction.INCREMENT, None))
    written = await do.run(on, RESIZE, name, given)
    number: int = written.sequence_number
    return number


async def ranges(
    on: Services, name: str, ticks: int | None = None, version: int | None = None
) -> Ranges:
    found = await do.run(on, RANGES, name, GetPageRanges(), snapshot=ticks, version=version)
    return [(one.start, one.end, one.is_clear) for one in found.ranges]


async def changes(on: Services, name: str, since: int, version: int | None = None) -> Ranges:
    operation = next(one for one in page.OPERATIONS if one.name == "Get Page Ranges (diff)")
    given = GetPageRangesDiff(previous=(since, None))
    found = await do.run(on, operation, name, given, version=version)
    return [(one.start, one.end, one.is_clear) for one in found.ranges]


async def copy_incrementally(on: Services, source: str, ticks: int, name: str) -> None:
    """Run Incremental Copy Blob from a snapshot of another blob of the same container."""
    place = await on.place(Service.BLOB, ACCOUNT, "photos")
    assert place is not None

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        return LocalSource(ACCOUNT, "photos", place.generation, source, ticks)

    on.held.of(CopySources).locate = locate
    given = CopyIncrementally("http://127.0.0.1/account/photos/source")
    operation = next(one for one in page.OPERATIONS if one.name == "Incremental Copy Blob")
    await do.run(on, operation, name, given)


def problems(on: Services) -> list[str]:
    """Return the doctor's findings."""
    assert isinstance(on.store, ServiceEngine)
    findings = Integrity(MemorySnapshot(on.store)).findings()
    return [f"{one.place}: {one.problem}" for one in findings]
