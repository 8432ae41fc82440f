"""Models for the history checker: a blob with compare-and-swap, and a lease.

They are pure step functions over what a client observes. ETags and lease ids are opaque. A model
learns them from the responses, and no ETag may be issued twice. Source of the rules: Microsoft's
"Specifying conditional headers for Blob service operations" and "Lease Blob". Time is not modelled:
leases here are held until they are released.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall


@dataclass(frozen=True, slots=True)
class Put:
    """Write `content` unconditionally: 201 with the new ETag."""

    content: Hashable


@dataclass(frozen=True, slots=True)
class PutIfMatch:
    """Write `content` if the blob still has `etag`: 201 with the new ETag, or 412."""

    content: Hashable
    etag: str


@dataclass(frozen=True, slots=True)
class PutIfAbsent:
    """Write `content` if there is no blob: 201 with the new ETag, or 409 (or 412)."""

    content: Hashable


@dataclass(frozen=True, slots=True)
class GetContent:
    """Read the blob: 200 with ETag and content, or 404."""


@dataclass(frozen=True, slots=True)
class DeleteContent:
    """Delete the blob unconditionally: 202, or 404."""


@dataclass(frozen=True, slots=True)
class DeleteIfMatch:
    """Delete if the blob still has `etag`: 202, 412, or 404 where there is no blob."""

    etag: str


class ModelMark(Enum):
    """Marks for ETags and contents that no client has observed; only the model uses them."""

    ABSENT = "absent"
    UNSEEN = "unseen"  # exists, and a later response may show it
    UNREAD = "unread"  # exists, and no response ever shows it; also the result of such a write

    def __repr__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Observation:
    """A client's observation of a blob.

    Arguments:
        status: the HTTP status.
        etag: the ETag of the response; None if it has none, or if it was not checked.
        content: what a read returned, in the form that a write took; None if it was not checked.
    """

    status: int
    etag: str | None = None
    content: Hashable = None


_REFUSED: Final = (409, 412)


class Blob(NamedTuple):
    """The state of a blob in the model.

    Arguments:
        etag: the current ETag, or a mark.
        content: the content of the blob.
        past: the earlier ETags, as a set of bits.
    """

    etag: str | ModelMark
    content: Hashable
    past: int

    def __repr__(self) -> str:
        if self.etag is ModelMark.ABSENT:
            return "no blob"
        return f"blob with etag={self.etag} content={self.content!r}"


class BlobModel:
    """The model of one blob, as a register with compare-and-swap.

    Arguments:
        etag, content: the initial blob; no blob by default.
    """

    def __init__(self, etag: str | None = None, content: Hashable = None) -> None:
        self._bits: dict[str, int] = {}
        self._initial = Blob(ModelMark.ABSENT if etag is None else etag, content, 0)

    def initial(self, object_key: str) -> Blob:
        """Return the initial state, which is the same for every object."""
        return self._initial

    def step(self, state: Blob, call: Hashable, result: Hashable) -> Iterable[Blob]:
        """Return the states after one call; see the calls for their possible results."""
        match call:
            case GetContent():
                return self._read(state, result)
            case Put():
                return self._write([state], [], call.content, result)
            case PutIfMatch():
                return self._write(*self._split(state, call.etag), call.content, result)
            case PutIfAbsent():
                free, taken = ([state], []) if state.etag is ModelMark.ABSENT else ([], [state])
                return self._write(free, taken, call.content, result)
            case DeleteContent():
                return self._delete([state], [], result)
            case DeleteIfMatch():
                return self._delete(*self._split(state, call.etag), result)
        raise TypeError(f"not a call on a blob: {call!r}")

    def _split(self, state: Blob, etag: str) -> tuple[list[Blob], list[Blob]]:
        """Return the states in which the blob has this ETag, and those in which it has not."""
        if state.etag is not ModelMark.UNSEEN:
            return ([state], []) if state.etag == etag else ([], [state])
        bit = self._bit(etag)
        if state.past & bit:
            return [], [state]
        return [state._replace(etag=etag)], [state._replace(past=state.past | bit)]

    def _read(self, state: Blob, result: Hashable) -> list[Blob]:
        if result is UNKNOWN:
            return [state]
        answer = _answer(result)
        if answer.status == 404:
            return [state] if state.etag is ModelMark.ABSENT else []
        if answer.status != 200 or state.etag is ModelMark.ABSENT:
            return []
        if answer.content is not None and answer.content != state.content:
            return []
        return [state] if answer.etag is None else self._split(state, answer.etag)[0]

    def _write(
        self, free: list[Blob], refusing: list[Blob], content: Hashable, result: Hashable
    ) -> list[Blob]:
        if result is UNKNOWN:
            return self._written(free, content, ModelMark.UNSEEN) + refusing
        if result is ModelMark.UNREAD:
            return self._written(free, content, ModelMark.UNREAD)
        answer = _answer(result)
        if answer.status == 201:
            return self._written(free, content, answer.etag or ModelMark.UNSEEN)
        return refusing if answer.status in _REFUSED else []

    def _written(self, free: list[Blob], content: Hashable, etag: str | ModelMark) -> list[Blob]:
        """Return the states of the blob after a write.

        A state that has had the same ETag before is left out, since ETags never repeat.
        """
        written = [Blob(etag, content, self._left(state)) for state in free]
        if isinstance(etag, ModelMark):
            return written
        return [state for state in written if not state.past & self._bit(etag)]

    def _delete(self, free: list[Blob], refusing: list[Blob], result: Hashable) -> list[Blob]:
        there = [state for state in free if state.etag is not ModelMark.ABSENT]
        missing = [state for state in (*free, *refusing) if state.etag is ModelMark.ABSENT]
        refusing = [state for state in refusing if state.etag is not ModelMark.ABSENT]
        deleted = [Blob(ModelMark.ABSENT, None, self._left(state)) for state in there]
        if result is UNKNOWN:
            return deleted + refusing + missing
        by_status = {202: deleted, 404: missing, 412: refusing}
        return by_status.get(_answer(result).status, [])

    def _left(self, state: Blob) -> int:
        """Return the ETags that are in the past once the state is left."""
        return state.past | self._bit(state.etag) if isinstance(state.etag, str) else state.past

    def _bit(self, etag: str) -> int:
        return 1 << self._bits.setdefault(etag, len(self._bits))

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Return whether the call is a read or a refusal, which change nothing."""
        if result is ModelMark.UNREAD:
            return False
        return isinstance(call, GetContent) or _answer(result).status in (*_REFUSED, 404)

    def version(self, state: Blob) -> Hashable | None:
        """Return the ETag, which is never issued twice."""
        return state.etag if isinstance(state.etag, str) else None

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return the ETag that a read showed, or that a successful condition named."""
        done = result is ModelMark.UNREAD or _answer(result).status in (200, 201, 202)
        if done and isinstance(call, PutIfMatch | DeleteIfMatch):
            return call.etag
        return _answer(result).etag if done and isinstance(call, GetContent) else None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Remove ETags and contents that only their own write mentions."""
        reads = [op.result for op in operations if isinstance(op.call, GetContent)]
        shown = [read for read in reads if isinstance(read, Observation) and read.status == 200]
        if any(read.etag is None or read.content is None for read in shown):
            return operations
        mentions = Counter(etag for op in operations for etag in _etags(op))
        contents = {read.content for read in shown}
        return [_without_unread(operation, mentions, contents) for operation in operations]


def _answer(result: Hashable) -> Observation:
    if not isinstance(result, Observation):
        raise TypeError(f"not an answer about a blob: {result!r}")
    return result


def _etags(operation: CompletedCall) -> Iterable[Hashable]:
    if isinstance(operation.call, PutIfMatch | DeleteIfMatch):
        yield operation.call.etag
    if isinstance(operation.result, Observation):
        yield operation.result.etag


def _without_unread(
    operation: CompletedCall, mentions: Counter[Hashable], contents: set[Hashable]
) -> CompletedCall:
    call, result = operation.call, operation.result
    if not isinstance(call, Put | PutIfMatch | PutIfAbsent):
        return operation
    if not isinstance(result, Observation):
        if call.content in contents:
            return operation
        return replace(operation, call=replace(call, content=ModelMark.UNREAD))
    if result.status == 201 and (result.etag is None or mentions[result.etag] > 1):
        return operation
    unread = replace(call, content=ModelMark.UNREAD)
    return replace(
        operation, call=unread, result=ModelMark.UNREAD if result.status == 201 else result
    )


@dataclass(frozen=True, slots=True)
class Acquire:
    """Acquire the lease: 201 with the id, or 409. The id that holds it may acquire it again."""

    proposed_id: str | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """Renew the lease: 200 if `lease_id` holds it, else 409 (or 412)."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class Release:
    """Release the lease: 200 if `lease_id` holds it, else 409 (or 412)."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """A client's observation of a lease: the HTTP status, and the lease id, if any."""

    status: int
    lease_id: str | None = None


class Holder(NamedTuple):
    """The holder of the lease: nobody, an id, or an id that no client has observed."""

    held: bool
    lease_id: str | None

    def __repr__(self) -> str:
        return f"held by {self.lease_id or 'an unseen id'}" if self.held else "free"


FREE: Final = Holder(False, None)


class LeaseModel:
    """The model of one lease without time: held from its acquisition to its release.

    It is a lock too: at most one id holds it, and only that id renews or releases it.
    """

    def initial(self, object_key: str) -> Holder:
        """Return the state of a lease that is free."""
        return FREE

    def step(self, state: Holder, call: Hashable, result: Hashable) -> Iterable[Holder]:
        """Return the states after one call; see the calls for their possible results."""
        match call:
            case Acquire():
                return self._acquire(state, call.proposed_id, result)
            case Renew():
                return self._use(state, call.lease_id, state, result)
            case Release():
                return self._use(state, call.lease_id, FREE, result)
        raise TypeError(f"not a call on a lease: {call!r}")

    def _acquire(
        self, state: Holder, proposed_id: str | None, result: Hashable
    ) -> Iterable[Holder]:
        again = state.held and proposed_id is not None and proposed_id == state.lease_id
        allowed = again or not state.held
        if result is UNKNOWN:
            return [Holder(True, proposed_id) if allowed else state]
        answer = _lease_answer(result)
        if answer.status != 201:
            return [state] if answer.status in _REFUSED and not allowed else []
        as_proposed = proposed_id is None or answer.lease_id == proposed_id
        return [Holder(True, answer.lease_id)] if allowed and as_proposed else []

    def _use(
        self, state: Holder, lease_id: str, after: Holder, result: Hashable
    ) -> Iterable[Holder]:
        holds = state.held and state.lease_id == lease_id
        if result is UNKNOWN:
            return [after if holds else state]
        if _lease_answer(result).status == 200:
            return [after] if holds else []
        return [state] if _lease_answer(result).status in _REFUSED and not holds else []

    def never_changes(self, call: Hashable, result: Hashable) -> bool:
        """Return whether the call is a renewal or a refusal, which change nothing."""
        return isinstance(call, Renew) or _lease_answer(result).status in _REFUSED

    def version(self, state: Holder) -> Hashable | None:
        """Return None: an id may hold the lease again later."""
        return None

    def needs(self, call: Hashable, result: Hashable) -> Hashable | None:
        """Return None, like `version`."""
        return None

    def simplify(self, operations: Sequence[CompletedCall]) -> Sequence[CompletedCall]:
        """Make ids that the server generated and no other call mentions equal to each other."""
        used = Counter(lease_id for op in operations for lease_id in _lease_ids(op))
        return [
            replace(operation, result=LeaseAnswer(201))
            if operation.call == Acquire() and _is_unused(operation.result, used)
            else operation
            for operation in operations
        ]


def _lease_answer(result: Hashable) -> LeaseAnswer:
    if not isinstance(result, LeaseAnswer):
        raise TypeError(f"not an answer about a lease: {result!r}")
    return result


def _lease_ids(operation: CompletedCall) -> Iterable[str | None]:
    match operation.call:
        case Acquire():
            yield operation.call.proposed_id
        case Renew() | Release():
            yield operation.call.lease_id
    if isinstance(operation.result, LeaseAnswer):
        yield operation.result.lease_id


def _is_unused(result: Hashable, used: Counter[str | None]) -> bool:
    return isinstance(result, LeaseAnswer) and result.status == 201 and used[result.lease_id] == 1
