"""A sweep looks at replaced bodies and at present ones, one after the other. A body that is
replaced in between is kept for its readers."""

from __future__ import annotations

from strongroom.engines.gateways import Horizon
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.sweeping.test_sweeping import BIG, begin_reading
from tests.services.sweeps import fresh, swept


def test_a_body_that_is_replaced_between_two_looks_of_a_sweep_stays_for_its_readers() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put_block(on, "b", b"x" * BIG)
        reading = await begin_reading(on, "b")
        real, done = on.store.gateways.horizon, False

        async def horizon() -> Horizon:
            nonlocal done
            if not done:
                done = True
                await do.put(on, "b", b"")
            return await real()

        # It is asked for between the two looks.
        on.store.gateways.horizon = horizon  # type: ignore[method-assign]  # a double
        await swept(on, sweeper)
        assert done
        assert len(do.left(on)[1]) == 1
        reading.end()
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)
