"""A store that reads a record again only when the listing says that it has changed.

Lives here: the wrapper around any store of the toolkit, for a reader who comes again and again.
Must not live here: the meaning of a record.
"""

from __future__ import annotations

from typing import Final

from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Watched
from strongroom.coordination.store import ListsStates, Promises, Store
from strongroom.coordination.stores.threaded_store import StoreBase

KEYS_MAX: Final = 20_000
"""A listing of one kind ends after about so many keys."""
_KEPT_MAX: Final = 2048
_KEPT_BYTES_MAX: Final = 16 * 1024


class KnownRecords(StoreBase):
    """The reads of one store, remembered by the states of its listings. For one thread at a time.

    Arguments:
        store: the store that is read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._states: dict[str, str] = {}
        self._known: dict[str, tuple[str, Entry | None]] = {}

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """Return the keys, and note their states; the reads that follow use them."""
        if not isinstance(self._store, ListsStates):
            return self._store.list_keys(prefix, timeout_s)[:KEYS_MAX]
        found = self._store.list_states(prefix, timeout_s, KEYS_MAX)
        gone = [key for key in self._states if key.startswith(prefix) and key not in found]
        for key in gone:
            del self._states[key]
            self._known.pop(key, None)
        self._states.update(found)
        return sorted(found)

    def get(self, key: str, timeout_s: float) -> Entry | None:
        """Return the entry; the one that was read before if its state is the same."""
        # The state is older than the read that follows: a change in between is read again later.
        state = self._states.get(key)
        known = self._known.get(key)
        if known is not None and known[0] == state:
            return known[1]
        entry = self._store.get(key, timeout_s)
        if state is not None and (entry is None or len(entry.value) <= _KEPT_BYTES_MAX):
            if len(self._known) >= _KEPT_MAX:
                self._known.clear()
            self._known[key] = state, entry
        return entry

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        return self._store.cas(key, expected, value, timeout_s, lease, note)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        return self._store.delete(key, expected, timeout_s)

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        return self._store.watch(key, version, timeout_s)

    def promises(self) -> Promises:
        return self._store.promises()

    def close(self) -> None:
        self._store.close()
