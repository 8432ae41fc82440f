"""`strongroom locks`: the holders and waiters of locks, and how the last hold ended.

Lives here: flags, and what is shown. Must not live here: how the records are read (coordination/).
"""

from __future__ import annotations

import dataclasses
import enum
import time
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.coordination.hold import DURATION
from strongroom.cli.coordination.stores import (
    DEFAULT_STORE,
    AsJson,
    StoreUrl,
    client_of,
    json_text,
    point_to_console,
    print_json,
)
from strongroom.cli.counted import counted
from strongroom.cli.durations import seconds
from strongroom.cli.exits import Exit, fail
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.coordination import BarrierView, Client, LockView, SlotsView, SlotView

    View = LockView | SlotsView | BarrierView

_HELP = """
Inspect locks, elections, semaphores, read-write locks and barriers from
outside, and break holds.

Examples

  strongroom locks list
  strongroom locks list --kind election
  strongroom locks show invoices
  strongroom locks show invoices --watch 20
  strongroom locks list --kind semaphore --json
  strongroom locks break invoices
"""


class Kind(enum.StrEnum):
    LOCK = "lock"
    ELECTION = "election"
    SEMAPHORE = "semaphore"
    RWLOCK = "rwlock"
    BARRIER = "barrier"


Name = Annotated[str, typer.Argument(help="Any text.")]
KindOf = Annotated[
    Kind | None, typer.Option("--kind", help="The kind of record; without it, all kinds.")
]
_POLL_S = 0.2
_ANY_KIND = "lock, election, semaphore, read-write lock or barrier"

locks_app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")


@locks_app.command("list")
def list_(kind: KindOf = None, as_json: AsJson = False, store: StoreUrl = DEFAULT_STORE) -> None:
    """Print every lock, election, semaphore, read-write lock and barrier that was ever used, and
    its holders. Exit code 1: some records cannot be read."""
    rows: list[tuple[Kind, View]] = []
    unreadable: list[str] = []
    with client_of(store) as client:
        point_to_console(client, as_json)
        for one in tuple(Kind) if kind is None else (kind,):
            rows += _views(client, one, unreadable)
    if as_json:
        print_json([_facts(one, view) for one, view in rows])
    else:
        for one, view in rows:
            typer.echo(_lines(view)[0] if kind else f"{one:<10}{_lines(view)[0]}")
    if not (rows or unreadable or as_json):
        typer.echo(f"there is no {kind or _ANY_KIND} in this store yet")
    if unreadable:
        fail(Exit.REFUSED, "\n  ".join([f"not to be read: {len(unreadable)}", *unreadable]))


def _views(client: Client, kind: Kind, unreadable: list[str]) -> list[tuple[Kind, View]]:
    """Return the views of all names of a kind; add what cannot be read to `unreadable`."""
    from strongroom.coordination import CorruptRecord

    views = []
    for name in client.list_names(kind):
        try:
            view = _view(client, kind, name)
        except CorruptRecord as error:
            unreadable.append(str(error))
            continue
        if view is not None:
            views.append((kind, view))
    return views


def _facts(kind: Kind, view: View) -> dict[str, object]:
    return {"kind": kind.value, **dataclasses.asdict(view)}


def _kind_of(client: Client, kind: Kind | None, name: str) -> Kind | None:
    """None if nothing has this name. If several kinds have it, the command ends."""
    if kind is not None:
        return kind
    kinds = [one for one in Kind if _view(client, one, name) is not None]
    if len(kinds) > 1:
        fail(Exit.USAGE, f"{name!r} is a {' and a '.join(kinds)}: say which with --kind")
    return kinds[0] if kinds else None


@locks_app.command("show")
def show(
    name: Name,
    kind: KindOf = None,
    watch: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar=DURATION,
            help="Watch for so long, and count the renewals: 20, 5s, 2m.",
        ),
    ] = 0.0,
    as_json: AsJson = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Print the holders of a lock, election, semaphore, read-write lock or barrier: label, start,
    fence, time left. Also print the waiters, and how the last hold ended. Exit code 1: nothing has
    this name."""
    with client_of(store) as client:
        point_to_console(client, as_json)
        known = _kind_of(client, kind, name)
        view = None if known is None else _view(client, known, name)
        if known is None or view is None:
            what = kind or _ANY_KIND
            fail(Exit.REFUSED, f"there never was a {what} called {name!r} in this store")
        signs = _watched(client, known, view, watch) if watch else []
        view = (_view(client, known, name) if watch else view) or view
    if as_json:
        signs_seen = {"signs_of_life_s_ago": signs} if watch else {}
        print_json({**_facts(known, view), **signs_seen})
        return
    typer.echo("\n".join(_lines(view)))
    if watch:
        last = f", the last {signs[-1]:.1f} s ago" if signs else ""
        typer.echo(f"  watched for {watch:g} s: {len(signs)} signs of life{last}")


@locks_app.command("break")
def break_(
    name: Name, kind: KindOf = None, as_json: AsJson = False, store: StoreUrl = DEFAULT_STORE
) -> None:
    """End the current hold of a lock or election, or all holds of a semaphore or read-write lock.
    The fence rises, so that guarded writes of the former holders are refused."""
    with client_of(store) as client:
        point_to_console(client, as_json)
        known = _kind_of(client, kind, name)
        view = None if known is None else _break(client, known, name)
    if as_json:
        print_json(None if view is None else dataclasses.asdict(view))
    elif view is None:
        typer.echo(f"nobody held {name!r}")
    else:
        typer.echo(f"broken: {_lines(view)[0]}")


def _view(client: Client, kind: Kind, name: str) -> View | None:
    from strongroom.coordination.recipes.slots import inspect_slots

    if kind in (Kind.LOCK, Kind.ELECTION):
        return client.show(name, kind)
    if kind is Kind.BARRIER:
        return client.driver.run(inspect_slots.show_barrier_steps(client.context, name))
    return client.driver.run(inspect_slots.show_slots_steps(client.context, kind, name))


def _break(client: Client, kind: Kind, name: str) -> View | None:
    from strongroom.coordination.recipes.slots.inspect_slots import break_slots_steps

    if kind in (Kind.LOCK, Kind.ELECTION):
        return client.break_lock(name, kind)
    if kind is Kind.BARRIER:
        fail(Exit.USAGE, "a barrier is not held by anybody, so that there is nothing to break")
    return client.driver.run(break_slots_steps(client.context, kind, name))


def _watched(client: Client, kind: Kind, view: View, seconds: float) -> list[float]:
    """How many seconds ago each sign of life was seen, oldest first."""
    clock = client.context.clock
    start_s = clock.monotonic_s()
    before, signs = view, []
    while clock.monotonic_s() < start_s + seconds:
        time.sleep(min(_POLL_S, seconds))
        now = _view(client, kind, view.name)
        if now is None:
            continue
        if _was_renewed(before, now):
            signs.append(clock.monotonic_s())
        before = now
    end_s = clock.monotonic_s()
    return [end_s - at_s for at_s in signs]


def _was_renewed(before: View, now: View) -> bool:
    from strongroom.coordination import LockView

    if isinstance(before, LockView) and isinstance(now, LockView):
        if not now.held or now.nonce != before.nonce:
            return False
        by_clock = None not in (before.renewed_s, now.renewed_s)
        renewed = by_clock and (now.renewed_s or 0.0) < (before.renewed_s or 0.0)
        return renewed or now.writes != before.writes
    known = {(one.who, one.since): one.writes for one in _holders_of(before)}
    return any(
        known.get((one.who, one.since)) not in (None, one.writes) for one in _holders_of(now)
    )


def _holders_of(view: View) -> tuple[SlotView, ...]:
    from strongroom.coordination import BarrierView, SlotsView

    if isinstance(view, BarrierView):
        return view.arrived
    return view.holders if isinstance(view, SlotsView) else ()


def _lines(view: View) -> list[str]:
    """Return a view in words; the first line is the summary."""
    return [plain(line) for line in _words(view)]


def _words(view: View) -> list[str]:
    from strongroom.coordination import BarrierView, LockView

    if isinstance(view, LockView):
        return _lock_lines(view)
    if isinstance(view, BarrierView):
        first = (
            f"{view.name}: generation {view.generation}, {len(view.arrived)} of "
            f"{view.parties or '?'} are there"
        )
        return [first, *_slot_lines("there", view.arrived)]
    permits = f" of {view.limit}" if view.limit else ""
    state = f"held by {len(view.holders)}{permits}" if view.holders else "free"
    first = f"{view.name}: {state}, last fence {view.fence}"
    return [
        first,
        *_slot_lines("holder", view.holders),
        *_slot_lines("waiting", view.waiting),
    ]


def _lock_lines(view: LockView) -> list[str]:
    if not view.held:
        ended = f", {view.end}" if view.end else ""
        last = f"; last held by {view.who} since {view.since}{ended}" if view.who else ""
        return [f"{view.name}: free, last fence {view.fence}{last}", *_waiting_lines(view)]
    lines = [
        f"{view.name}: held by {view.who} since {view.since}, fence {view.fence}, free in "
        f"{view.left_s:.1f} s at the latest unless renewed"
    ]
    if view.value is not None:
        lines.append(f"  value: {json_text(view.value)}")
    lines.append(f"  ttl: {view.ttl_s:g} s, written {counted(view.writes, 'times')} by this hold")
    if view.renewed_s is not None:
        lines.append(f"  renewed: {view.renewed_s:.1f} s ago, by the store's clock")
    return [*lines, *_waiting_lines(view)]


def _waiting_lines(view: LockView) -> list[str]:
    return [f"  waiting {place}: {waiter}" for place, waiter in enumerate(view.waiting, 1)]


def _slot_lines(word: str, slots: tuple[SlotView, ...]) -> list[str]:
    return [
        f"  {word} {place}: {one.who} since {one.since}, {one.role}, fence {one.fence}, out in "
        f"{one.left_s:.1f} s at the latest unless renewed, written {counted(one.writes, 'times')}"
        for place, one in enumerate(slots, 1)
    ]
