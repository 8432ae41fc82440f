"""Histories of one file: opens, REST operations, breaks, locks and deletions, in any order."""

from __future__ import annotations

from itertools import combinations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from strongroom.semantics.file import byte_ranges, opens, oplocks
from strongroom.semantics.file.accesses import Disposition, FileOperation, Use
from strongroom.semantics.file.byte_ranges import LocksGranted, RangeLock
from strongroom.semantics.file.opens import (
    BreakAwaited,
    HandleRequest,
    OpenAdmitted,
    OpenTable,
    RestRequest,
)
from strongroom.semantics.file.oplocks import BreakNotice, Caching, CachingKey, CachingKind, Cause
from tests.semantics.file.open_cases import FILE, STATES, admit, handle

# Mostly compatible accesses, so that histories get further than share modes.
accesses = st.sampled_from([Use(1), Use(1), Use(3), Use(2), Use(5), Use(0)])
shares = st.one_of(st.just(Use(7)), st.just(Use(7)), st.just(Use(7)), st.integers(0, 7).map(Use))
picks = st.integers(0, 50)
dispositions = st.sampled_from([*Disposition, *[Disposition.OPEN] * 5])


class OpenHistories(RuleBasedStateMachine):
    """Clients and REST operations come, wait, answer or not, and leave.

    The machine tracks the notices as clients would: the caching that each holder has, and the
    answers that are due. The table must agree after every step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = OpenTable()
        self.last_id = 0
        self.living: set[int] = set()
        self.caching: dict[CachingKey, Caching] = {}
        self.owing: dict[CachingKey, Caching] = {}
        self.waiting: list[tuple[HandleRequest | RestRequest, frozenset[CachingKey]]] = []

    def new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def told(self, notices: tuple[BreakNotice, ...]) -> None:
        for notice in notices:
            assert self.caching[notice.key] == notice.current, "the client's view is the server's"
            assert notice.key not in self.owing, "one notice at a time"
            if notice.needs_answer:
                self.owing[notice.key] = notice.to
            else:
                self.caching[notice.key] = notice.to

    def ask(self, request: HandleRequest | RestRequest) -> None:
        result = admit(self.table, request)
        if isinstance(result, BreakAwaited):
            self.table = result.table
            self.told(result.notices)
            assert result.holders and set(result.holders) <= set(self.owing)
            if isinstance(request, HandleRequest):
                request = replace(request, has_waited=True)
            self.waiting.append((request, frozenset(result.holders)))
        elif isinstance(result, OpenAdmitted):
            self.table = result.table
            self.told(result.notices)
            self.living.add(request.id)
            if isinstance(request, HandleRequest):
                key = request.id if request.key is None else request.key
                assert not result.caching & ~self.most(key, request.wanted)
                self.caching[key] = result.caching

    def most(self, key: CachingKey, wanted: int) -> Caching:
        return self.caching.get(key, Caching.NONE) | Caching(wanted)

    @rule(
        access=accesses, share=shares, lease=st.sampled_from(["", "a", "b"]),
        wanted=st.sampled_from(sorted(STATES)), disposition=dispositions,
        on_close=st.booleans(),
    )  # fmt: skip
    def open(
        self, access: Use, share: Use, lease: str, wanted: str, disposition: Disposition,
        on_close: bool,
    ) -> None:  # fmt: skip
        wanted = "-" if not lease and wanted == "RH" else wanted
        asked = handle(
            self.new_id(), access, share, lease=lease, wanted=wanted, disposition=disposition
        )
        self.ask(replace(asked, deletes_on_close=on_close and bool(access & Use.DELETE)))

    @rule(operation=st.sampled_from(FileOperation))
    def rest(self, operation: FileOperation) -> None:
        self.ask(RestRequest(self.new_id(), operation, offset=2, length=3))

    @precondition(lambda self: self.living)
    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        open_id = sorted(self.living)[pick % len(self.living)]
        gone = opens.leave(self.table, open_id, FILE)
        self.living.discard(open_id)
        self.table = gone.table
        assert gone.removes is (self.table.deletion.is_pending and not self.living)
        keys = {entry.key for entry in self.table.entries}
        self.caching = {key: held for key, held in self.caching.items() if key in keys}
        self.owing = {key: to for key, to in self.owing.items() if key in keys}
        if gone.removes:
            self.table = OpenTable()
            self.waiting.clear()

    @precondition(lambda self: self.owing)
    @rule(pick=picks, give_up=st.integers(0, 7))
    def answer(self, pick: int, give_up: int) -> None:
        key = sorted(self.owing, key=str)[pick % len(self.owing)]
        to = self.owing.pop(key)
        holder = opens.holder_of(self.table, key)
        assert holder is not None and holder.break_to == to
        kept = Caching(to & ~give_up)
        kept = kept if kept & Caching.READ else Caching.NONE
        if holder.kind is CachingKind.OPLOCK:
            level = oplocks.OplockLevel.II if kept else oplocks.OplockLevel.NONE
            kept = Caching.READ if kept else Caching.NONE
            holder, notice, status = oplocks.oplock_acknowledged(holder, level)
            assert status is None
        else:
            result = oplocks.lease_acknowledged(holder, kept)
            assert isinstance(result, tuple)
            holder, notice = result
        self.caching[key] = kept
        self.table = opens.with_holder(self.table, holder)
        self.told(() if notice is None else (notice,))

    @precondition(lambda self: self.owing)
    @rule(pick=picks)
    def time_passes(self, pick: int) -> None:
        key = sorted(self.owing, key=str)[pick % len(self.owing)]
        holder = opens.holder_of(self.table, key)
        assert holder is not None
        self.owing.pop(key)
        self.caching[key] = Caching.NONE
        self.table = opens.with_holder(self.table, oplocks.timed_out(holder))

    @precondition(lambda self: self.waiting)
    @rule(pick=picks)
    def ask_again(self, pick: int) -> None:
        request, _ = self.waiting.pop(pick % len(self.waiting))
        self.ask(request)

    @precondition(lambda self: self.living)
    @rule(pick=picks, cause=st.sampled_from([Cause.READ, Cause.WRITE]))
    def act(self, pick: int, cause: Cause) -> None:
        entry = opens.entry_of(self.table, sorted(self.living)[pick % len(self.living)])
        if entry.is_handle:
            result = opens.break_caches(self.table, entry.id, cause)
            self.table = result.table
            self.told(result.notices)

    @precondition(lambda self: self.living)
    @rule(pick=picks, delete=st.booleans())
    def dispose(self, pick: int, delete: bool) -> None:
        entry = opens.entry_of(self.table, sorted(self.living)[pick % len(self.living)])
        if entry.is_handle:
            result = opens.set_disposition(self.table, entry.id, FILE, delete=delete)
            if isinstance(result, OpenAdmitted | BreakAwaited):
                self.table = result.table
                self.told(result.notices)

    @precondition(lambda self: self.living)
    @rule(pick=picks, offset=st.integers(0, 5), exclusive=st.booleans())
    def lock(self, pick: int, offset: int, exclusive: bool) -> None:
        entry = opens.entry_of(self.table, sorted(self.living)[pick % len(self.living)])
        if entry.is_handle:
            wanted = RangeLock(offset, 2, exclusive, entry.id)
            result = byte_ranges.lock(self.table.locks, [wanted])
            if isinstance(result, LocksGranted):
                self.table = replace(self.table, locks=result.table)

    @invariant()
    def an_entry_is_there_from_admission_until_leaving_and_no_longer(self) -> None:
        assert {entry.id for entry in self.table.entries} == self.living
        assert len(self.table.entries) == len(self.living)
        assert all(one.owner in self.living for one in self.table.locks.locks)
        assert self.table.deletion.on_close <= self.living
        assert not self.table.deletion.is_pending or self.living

    @invariant()
    def no_two_opens_deny_each_other(self) -> None:
        for one, other in combinations(self.table.entries, 2):
            if one.is_handle or other.is_handle:
                assert not one.stake.conflicts(other.stake)

    @invariant()
    def who_caches_writes_is_the_only_one_who_caches(self) -> None:
        # This holds during a break too: no open is admitted before the answer.
        held = [one for one in self.table.holders if one.held]
        writers = [one for one in held if one.held & Caching.WRITE]
        assert len(writers) <= 1
        assert not writers or held == writers
        for holder in writers:
            others = (entry for entry in self.table.entries if entry.key != holder.key)
            assert all(entry.is_stat for entry in others if entry.is_handle)

    @invariant()
    def clients_and_table_agree_and_each_notice_has_one_answer_to_come(self) -> None:
        breaking = {one.key for one in self.table.holders if one.is_breaking}
        assert breaking == set(self.owing)
        for holder in self.table.holders:
            assert holder.held == self.caching[holder.key]
            assert holder.key in {entry.key for entry in self.table.entries}

    @invariant()
    def who_waits_is_admitted_or_refused_once_nobody_owes_an_answer(self) -> None:
        if not self.owing:
            for request, _ in self.waiting:
                result = admit(self.table, request)
                if isinstance(result, BreakAwaited):
                    assert result.notices, "it waits for an answer that nobody was asked for"

    def teardown(self) -> None:
        """Let all clients leave: the table must be empty."""
        for open_id in sorted(self.living):
            self.table = opens.leave(self.table, open_id, FILE).table
        assert self.table == OpenTable(deletion=self.table.deletion)
        assert not self.table.deletion.on_close


TestOpenHistories = OpenHistories.TestCase
