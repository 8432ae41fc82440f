"""What an operator sees of the jobs in the background: those that run, fail and are finished."""

from __future__ import annotations

from strongroom.store.core import keys
from strongroom.testing.contract.subject import put
from strongroom.values import JobFacts
from tests.services.container_calls import run
from tests.services.sweeps import drop_container, fresh, swept


def test_a_job_that_fails_is_seen_until_it_is_done() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        assert sweeper.facts() == JobFacts(running=0, failing=0, done=0)
        await drop_container(on)
        await swept(on, sweeper)
        assert sweeper.facts() == JobFacts(running=0, failing=0, done=1)
        now = await on.store.now()
        await put(on.store, (keys.job(now, now, 1), b"no job"))
        await swept(on, sweeper)
        assert sweeper.facts() == JobFacts(running=0, failing=1, done=1)

    run(test)
