"""Models of a register and a lock of the toolkit for the checker, one call at a time.

Versions and fences are opaque: a model learns them from the answers. The expiry of a lock is
modelled as a call of its own. A hold that was not released ends by an `Expire` without an answer,
at any time after its holder was last seen to hold it. Must not live here: clients, faults.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class Read:
    """Read the register."""


@dataclass(frozen=True, slots=True)
class Put:
    """Write `new`, whatever the present value is."""

    new: str


@dataclass(frozen=True, slots=True)
class Swap:
    """Write `new` if the value is `expected` (None: no value), and the version `version` if
    given."""

    new: str
    expected: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Acquire:
    """Acquire the lock."""


@dataclass(frozen=True, slots=True)
class CheckHeld:
    """Ask the handle with this fence whether it holds the lock."""

    fence: int


@dataclass(frozen=True, slots=True)
class Release:
    """Release the handle with this fence."""

    fence: int


@dataclass(frozen=True, slots=True)
class Expire:
    """End the hold with this fence by time."""

    fence: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The answer of a read: value and version, both None if there is no value."""

    value: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The answer of a write: its version, None if it was overwritten before that was known."""

    version: str | None


@dataclass(frozen=True, slots=True)
class SwapRefused:
    """The answer of a failed swap: the present version, None if there is no value."""

    version: str | None


@dataclass(frozen=True, slots=True)
class Acquired:
    """The answer of a successful acquire."""

    fence: int


@dataclass(frozen=True, slots=True)
class HeldState:
    """The state that a handle reports."""

    held: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """The call was certainly not applied: a read without an answer, a refused write, a failed
    acquire."""


class RegisterState(NamedTuple):
    """The value and the version; the version is None until a client has seen it."""

    value: str | None
    version: str | None


_NEVER_READ = "never read"


class RegisterModel:
    """A register with versions; see `Hints` for the methods that shorten the search."""

    def initial(self, object_key: str) -> RegisterState:
        """Return the state without a value."""
        return RegisterState(None, None)

    def step(
        self, state: RegisterState, call: Hashable, result: Hashable
    ) -> Iterable[RegisterState]:
        """See `Model.step`."""
        match call, result:
            case _, Failed():
                return (state,)
            case Read(), ReadResult(value, version):
                return _shown(state, value, version)
            case Read(), _:
                return (state,)
            case Put(new), _:
                return (RegisterState(new, _version(result)),)
            case Swap(), SwapRefused(version):
                return _differs(state, call, version)
            case Swap(new, expected, version), _ if state.value == expected:
                if version is None or state.version in (None, version):
                    return (RegisterState(new, _version(result)),)
        return ()

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Whether the call is a read, or was not applied."""
        return isinstance(call, Read) or isinstance(result, Failed | SwapRefused)

    def version(self, state: RegisterState) -> Hashable | None:
        """Return the version, once it was seen."""
        return state.version

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return the version that the answer shows, or that the write required."""
        match call, result:
            case _, ReadResult(_, version) | SwapRefused(version):
                return version
            case Swap(_, _, version), WriteResult():
                return version
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Treat all lost writes as equal whose value appears in no other operation."""
        mentioned = {op.result.value for op in operations if isinstance(op.result, ReadResult)}
        mentioned |= {op.call.expected for op in operations if isinstance(op.call, Swap)}
        return [_plain(operation, mentioned) for operation in operations]


def _plain(operation: CompletedCall, mentioned: set[str | None]) -> CompletedCall:
    call = operation.call
    if operation.result is UNKNOWN and isinstance(call, Put | Swap) and call.new not in mentioned:
        return replace(operation, call=replace(call, new=_NEVER_READ))
    return operation


def _version(result: Hashable) -> str | None:
    return result.version if isinstance(result, WriteResult) else None


def _shown(
    state: RegisterState, value: str | None, version: str | None
) -> tuple[RegisterState, ...]:
    if state.value != value or (value is not None and state.version not in (None, version)):
        return ()
    return (RegisterState(value, version),)


def _differs(state: RegisterState, call: Swap, version: str | None) -> tuple[RegisterState, ...]:
    """Return the states after a refused swap that reported this version; none if that is
    impossible."""
    if version is None:
        return (state,) if state.value is None and call.expected is not None else ()
    if state.value is None or state.version not in (None, version):
        return ()
    if state.value == call.expected and call.version in (None, version):
        return ()
    return (RegisterState(state.value, version),)


class LockState(NamedTuple):
    """The fence of the present holder, 0 if there is none, and the highest fence so far."""

    holder: int
    highest: int


class LockModel:
    """A lock with fences: it has one holder, and fences rise, possibly with gaps.

    An acquire whose answer was lost counts as not applied. It may have raised the fence, and its
    hold ends by time.
    """

    def initial(self, object_key: str) -> LockState:
        """Return the state of a lock that was never held."""
        return LockState(0, 0)

    def step(self, state: LockState, call: Hashable, result: Hashable) -> Iterable[LockState]:
        """See `Model.step`."""
        match call, result:
            case Acquire(), Acquired(fence):
                free = state.holder == 0 and fence > state.highest
                return (LockState(fence, fence),) if free else ()
            case ((CheckHeld(fence) | Release(fence)), HeldState(True)) if state.holder != fence:
                return ()
            case Release(fence) | Expire(fence), _ if state.holder == fence:
                return (LockState(0, state.highest),)
        return (state,)
