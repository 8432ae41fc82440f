"""What a register and a lock of the toolkit may do, one call at a time: models for the checker.

Versions and fences are opaque: a model learns them from the answers. A lock's time is modelled as a
call of its own: a hold that was not given back ends by an `Expire` that nobody answers, at any time
after its holder was last seen to believe. Must not live here: clients, faults.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from strongroom.testing.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class Read:
    """Read the register."""


@dataclass(frozen=True, slots=True)
class Put:
    """Write `new` whatever is there."""

    new: str


@dataclass(frozen=True, slots=True)
class Swap:
    """Write `new` if `expected` is there (None: nothing), and `version` if that is given."""

    new: str
    expected: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Take:
    """Take the lock."""


@dataclass(frozen=True, slots=True)
class Believe:
    """Ask the handle with this fence whether it holds."""

    fence: int


@dataclass(frozen=True, slots=True)
class Give:
    """Release the handle with this fence."""

    fence: int


@dataclass(frozen=True, slots=True)
class Expire:
    """The hold with this fence ends by time."""

    fence: int


@dataclass(frozen=True, slots=True)
class Saw:
    """A read's answer: value and version, None and None if there is nothing."""

    value: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Wrote:
    """A write was done; the version, None if it was overwritten before that was known."""

    version: str | None


@dataclass(frozen=True, slots=True)
class Differs:
    """A swap was not done; the version that is there instead, None if nothing is."""

    version: str | None


@dataclass(frozen=True, slots=True)
class Took:
    """The lock was taken with this fence."""

    fence: int


@dataclass(frozen=True, slots=True)
class Says:
    """What a handle says of itself."""

    held: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """It was certainly not done: no answer to a read, a write that was refused, a lock not had."""


class RegisterState(NamedTuple):
    """What is there; the version is None until somebody saw it."""

    value: str | None
    version: str | None


_NEVER_READ = "never read"


class RegisterModel:
    """A register with versions; see `Hints` for what shortens the search."""

    def initial(self, object_key: str) -> RegisterState:
        """Nothing is there."""
        return RegisterState(None, None)

    def step(
        self, state: RegisterState, call: Hashable, result: Hashable
    ) -> Iterable[RegisterState]:
        """See `Model.step`."""
        match call, result:
            case _, Failed():
                return (state,)
            case Read(), Saw(value, version):
                return _shown(state, value, version)
            case Read(), _:
                return (state,)
            case Put(new), _:
                return (RegisterState(new, _version(result)),)
            case Swap(), Differs(version):
                return _differs(state, call, version)
            case Swap(new, expected, version), _ if state.value == expected:
                if version is None or state.version in (None, version):
                    return (RegisterState(new, _version(result)),)
        return ()

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Reads, and whatever was not done."""
        return isinstance(call, Read) or isinstance(result, Failed | Differs)

    def version(self, state: RegisterState) -> Hashable | None:
        """Its version, once seen."""
        return state.version

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """The version that was shown, or on which it was written."""
        match call, result:
            case _, Saw(_, version) | Differs(version):
                return version
            case Swap(_, _, version), Wrote():
                return version
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Lost writes whose value nobody mentions are all alike."""
        mentioned = {op.result.value for op in operations if isinstance(op.result, Saw)}
        mentioned |= {op.call.expected for op in operations if isinstance(op.call, Swap)}
        return [_plain(operation, mentioned) for operation in operations]


def _plain(operation: CompletedCall, mentioned: set[str | None]) -> CompletedCall:
    call = operation.call
    if operation.result is UNKNOWN and isinstance(call, Put | Swap) and call.new not in mentioned:
        return replace(operation, call=replace(call, new=_NEVER_READ))
    return operation


def _version(result: Hashable) -> str | None:
    return result.version if isinstance(result, Wrote) else None


def _shown(
    state: RegisterState, value: str | None, version: str | None
) -> tuple[RegisterState, ...]:
    if state.value != value or (value is not None and state.version not in (None, version)):
        return ()
    return (RegisterState(value, version),)


def _differs(state: RegisterState, call: Swap, version: str | None) -> tuple[RegisterState, ...]:
    """Whether a swap may have been refused, and told that this version is there."""
    if version is None:
        return (state,) if state.value is None and call.expected is not None else ()
    if state.value is None or state.version not in (None, version):
        return ()
    if state.value == call.expected and call.version in (None, version):
        return ()
    return (RegisterState(state.value, version),)


class LockState(NamedTuple):
    """The fence of who holds it, 0 if nobody, and the highest that there ever was."""

    holder: int
    highest: int


class LockModel:
    """A lock with fences: one holder, fences rise; gaps between them are allowed.

    A take whose answer was lost is as if it had not been: it may count the fence up, and its hold
    ends by time, as if it had never been there.
    """

    def initial(self, object_key: str) -> LockState:
        """Nobody ever held it."""
        return LockState(0, 0)

    def step(self, state: LockState, call: Hashable, result: Hashable) -> Iterable[LockState]:
        """See `Model.step`."""
        match call, result:
            case Take(), Took(fence):
                free = state.holder == 0 and fence > state.highest
                return (LockState(fence, fence),) if free else ()
            case ((Believe(fence) | Give(fence)), Says(True)) if state.holder != fence:
                return ()
            case Give(fence) | Expire(fence), _ if state.holder == fence:
                return (LockState(0, state.highest),)
        return (state,)
