"""The text that a person sees while a command waits: the holder, and the place in the queue.

Lives here: the text, and printing it on standard error: at a terminal, or with --verbose. Also the
printing of the toolkit's warnings (a store that does not answer, say), which needs no terminal.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.coordination import Client, Gate

Describe = Callable[[], str | None]
"""Describes the current holders; None if there is nothing to print. May raise CoordinationError."""

_log = logging.getLogger("strongroom.coordination")
_PRINT_AFTER_S = 1.0
_PRINT_EVERY_S = 5.0
_SHOWN_MAX = 3


def is_shown(quiet: bool, verbose: bool) -> bool | None:
    """Return whether to print, from `--quiet` and `--verbose`; None: at a terminal only."""
    if quiet:
        return False
    return True if verbose else None


@contextmanager
def describing_wait(describe: Describe, shown: bool | None) -> Iterator[None]:
    """Print messages while the block waits.

    Arguments:
        describe: returns the message; called a second after the beginning, then every five.
        shown: True: always; False: never, and the toolkit's warnings are hidden too; None: only if
            standard error is a terminal.
    """
    if shown is False:
        _log.addFilter(_nothing)
        try:
            yield
        finally:
            _log.removeFilter(_nothing)
        return
    if shown is None and not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_print_descriptions, args=(describe, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def _print_descriptions(describe: Describe, done: threading.Event) -> None:
    from strongroom.coordination import CoordinationError

    wait_s = _PRINT_AFTER_S
    while not done.wait(wait_s):
        wait_s = _PRINT_EVERY_S
        try:
            line = describe()
        except CoordinationError:
            continue  # the toolkit warns of an outage; the caller reports every other error
        if line and not done.is_set():
            print(f"strongroom: waiting for {plain(line)}", file=sys.stderr, flush=True)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"strongroom: {plain(record.getMessage())}"
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return line


@contextmanager
def printing_warnings() -> Iterator[None]:
    """Print the toolkit's warnings on standard error while the block runs, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Plain())
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def lock_description(client: Client, name: str, kind: str) -> Describe:
    def describe() -> str | None:
        view = client.show(name, kind)
        if view is None or not view.held:
            return None
        position = queue_position(view.waiting, client.context.label)
        return f"{name!r}: held by {view.who} since {view.since}, fence {view.fence}{position}"

    return describe


def slots_description(client: Client, name: str, kind: str) -> Describe:
    def describe() -> str | None:
        from strongroom.coordination.recipes.slots.inspect_slots import show_slots_steps

        view = client.driver.run(show_slots_steps(client.context, kind, name))
        if view is None or not (view.holders or view.waiting):
            return None
        held = labels_since([(one.who, one.since) for one in view.holders])
        position = queue_position([one.who for one in view.waiting], client.context.label)
        return f"{name!r}: held by {held or 'nobody yet'}, fence {view.fence}{position}"

    return describe


def gate_description(gate: Gate, name: str) -> Describe:
    """Return a function that describes a closed gate: its generation, and who closed it."""

    def describe() -> str | None:
        view = gate.show()
        by = f", by {view.who} since {view.since}" if view.who else ""
        return None if view.is_open else f"gate {name!r}: closed, generation {view.generation}{by}"

    return describe


def labels_since(seen: Sequence[tuple[str, str]]) -> str:
    """Return the labels, each with its time, in words; only the first three are named."""
    words = [f"{who} since {since}" for who, since in seen[:_SHOWN_MAX]]
    if len(seen) > _SHOWN_MAX:
        words.append(f"{len(seen) - _SHOWN_MAX} more")
    return ", ".join(words)


def queue_position(waiting: Sequence[str], label: str) -> str:
    """Return the place of `label` in the queue in words; an empty text if there is no queue."""
    if not waiting:
        return ""
    if label in waiting:
        return f"; place {waiting.index(label) + 1} of {len(waiting)} in the queue"
    return f"; {len(waiting)} in the queue"
