"""The registered read of a file's bytes, whatever the access.

Lives here: the order of entering, registering, waiting, looking.
"""

from __future__ import annotations

from contextlib import ExitStack

from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.byte_ranges import WHOLE_FILE
from strongroom.services.core.runner import Services
from strongroom.services.file.node.access import ByPath, NodeAccess, NodeState, look
from strongroom.services.file.opens.admission import enter, facts_of
from strongroom.services.file.snapshots.readers import FileReaders


async def entered_for_reading(
    services: Services,
    access: ByPath,
    operation: FileOperation,
    stack: ExitStack,
    byte_range: tuple[int, int] = WHOLE_FILE,
) -> NodeState:
    """Enter a file by its path, and read its state, until `stack` ends; after an error, nothing is
    left on it. `byte_range`: (offset, length) of the bytes that are read.

    Nobody has a file of a snapshot open for writing, so it needs no entry.
    """
    with ExitStack() as attempt:
        if access.origin.snapshot is None:
            facts = facts_of((await look(services, access)).record)
            access = ByPath(access.origin, access.where, facts)
            # Enter before the second look: a client sends its cached writes meanwhile.
            attempt.enter_context(
                await enter(services, access.partition, operation, facts, byte_range=byte_range)
            )
        seen = await begin_reading(services, access, attempt)
        stack.push(attempt.pop_all())
    return seen


async def begin_reading(services: Services, access: NodeAccess, stack: ExitStack) -> NodeState:
    """Read the state of a file, whose bytes no sweep removes until `stack` ends.

    The reader registers before the attributes are read, and their version is its position. In a
    snapshot, its position is the snapshot's stamp, and the read ends with a check that the snapshot
    still exists.
    """
    reading = services.held.of(FileReaders).begin(access.partition)
    stack.callback(reading.end)
    stack.callback(services.store.gateways.begin_reading().end)
    await reading.wait_for_mutations()
    seen = await look(services, access)
    reading.set_position(seen.version)
    return seen
