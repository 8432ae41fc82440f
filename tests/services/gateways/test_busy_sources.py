"""A copy whose source another gateway serves, and cannot be asked for."""

from __future__ import annotations

from strongroom.auth.request import Service
from strongroom.services.blob.copies.reading import OWN as OF_BLOBS
from strongroom.services.core.copies.opening import reopen_source
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OWN as OF_FILES
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.store.core.records import CopyOrder
from tests.services import container_calls
from tests.services import file_calls as do
from tests.services.container_calls import refused, run
from tests.services.gateways.test_share_holds import BUSY, with_file


def test_a_copy_to_a_blob_finds_a_share_elsewhere_busy_and_not_unreadable() -> None:
    """It is tried again then; a source that cannot be read would end it."""

    async def test() -> None:
        holder, other = await with_file()
        (share,) = holder.held.of(ShareHolds)._shares
        sources = CopySources({Service.FILE: OF_FILES.open})
        copying = Services(other.store, other.clock, given=(sources,))
        order = CopyOrder(
            account=container_calls.ACCOUNT,
            container=do.SHARE,
            generation=share,
            blob="f",
            destination="a/c/b",
            service=Service.FILE.value,
        )
        assert await refused(reopen_source(copying, order, OF_BLOBS)) == BUSY
        await holder.store.close()
        source = await reopen_source(copying, order, OF_BLOBS)
        assert b"".join([bytes(chunk) async for chunk in source]) == b"first"
        await source.close()

    run(test)
