"""A fresh set of services with a sweeper, and the ways in which tests use it."""

from __future__ import annotations

from strongroom.operations.blob import container
from strongroom.services.blob.containers import containers
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services.container_calls import create, placed, services


async def fresh() -> tuple[Services, Sweeper]:
    on = services()
    await create(on)
    return on, Sweeper(on)


async def swept(on: Services, sweeper: Sweeper) -> int:
    """Do all jobs that are due. The clock is moved, because it stands still while stamps rise."""
    on.store.advance(1)
    return await sweeper.run_once()


async def drop_container(on: Services) -> None:
    call = await placed(on, rule=container.DELETE_CONTAINER.rule)
    await containers.delete_container(on, call)
