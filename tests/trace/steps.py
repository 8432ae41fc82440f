"""The steps of the path of a request, and the function that begins each.

Lives here: the order of ARCHITECTURE.md, as code objects. Must not live here: observation
(recording.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final

from strongroom.auth.authorize import authorize
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.memory import MemoryEngine
from strongroom.operations.core import codec
from strongroom.operations.core.routes import Routes
from strongroom.servers.requests import admission, pipeline
from strongroom.services.core.runner import Services
from tests.trace.recording import Called, Event

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "read": admission.read,
    "authenticate": admission.identify,
    "match": Routes.match,
    "place": Services.place,
    "authorize": authorize,
    "decode": codec.decode,
    "run": pipeline._run,
    "encode": codec.encode,
}
STEPS: Final = tuple(_FUNCTIONS)
_BEGINS: Final[dict[CodeType, int]] = {
    function.__code__: at for at, function in enumerate(_FUNCTIONS.values())
}
_CALLS: Final = ("read", "follow", "read_range", "scan", "now", "update", "wait")
ENGINE: Final[dict[CodeType, str]] = {
    getattr(engine, name).__code__: name
    for engine in (MemoryEngine, EmbeddedEngine)
    for name in _CALLS
}


@dataclass(slots=True)
class Step:
    """A step with what happened in it.

    Attributes:
        was_begun: whether the function that begins it was called. Without that the step was left
            out, or refused before.
    """

    name: str
    was_begun: bool = False
    events: list[Event] = field(default_factory=list)


def steps_of(events: Iterable[Event]) -> list[Step]:
    """Return the steps in their order.

    The bytes come before `read` and go after `encode`; what runs for them belongs to these steps. A
    later step does not go back: a check that a decision repeats belongs to `run`. Only `read`
    begins again, with each part of a batch.
    """
    at, found = 0, [Step(STEPS[0])]
    for event in events:
        begun = _BEGINS.get(event.code) if isinstance(event, Called) else None
        if begun is not None and (begun > at or (begun == 0 and found[-1].was_begun)):
            found.append(Step(STEPS[begun], True))
            at = begun
        elif begun == at:
            found[-1].was_begun = True
        found[-1].events.append(event)
    return found


def missing(steps: Iterable[Step]) -> list[str]:
    """The steps that were left out."""
    begun = {step.name for step in steps if step.was_begun}
    return [name for name in STEPS if name not in begun]
