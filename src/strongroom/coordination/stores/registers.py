"""The reference model of a store: its semantics in one dictionary, without IO.

Lives here: the semantics of get, cas, delete, list and of the store's own lease clock, with time as
an argument. The memory store adds a lock to it, the simulator a faulty network.
"""

from __future__ import annotations

from dataclasses import dataclass

from strongroom.coordination.effects import (
    CONFLICT,
    Applied,
    CasOutcome,
    Entry,
    LeaseAction,
    LeaseTerms,
)


@dataclass(slots=True)
class _Cell:
    value: bytes
    version: str
    note: str
    holder: str = ""
    expires_s: float = 0.0


class Registers:
    """Keys with values, versions, notes and, optionally, leases.

    Arguments:
        server_lease: keep a lease clock, and report it in `Entry.expires_in_s`.
    """

    def __init__(self, server_lease: bool = False) -> None:
        self.server_lease = server_lease
        self._cells: dict[str, _Cell] = {}
        self._writes = 0

    def get(self, key: str, now_s: float) -> Entry | None:
        """Return the entry as of `now_s` by the store's clock; None if the key is absent."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        left_s = None
        if self.server_lease:
            left_s = cell.expires_s - now_s if cell.holder else 0.0
        return Entry(cell.value, cell.version, left_s, cell.note)

    def version(self, key: str) -> str | None:
        """Return only the version; None if the key is absent."""
        cell = self._cells.get(key)
        return None if cell is None else cell.version

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        lease: LeaseTerms | None,
        note: str,
        now_s: float,
    ) -> CasOutcome:
        cell = self._cells.get(key)
        if (None if cell is None else cell.version) != expected:
            return CONFLICT
        if lease is not None and self.server_lease and not _allows(cell, lease, now_s):
            return CONFLICT
        self._writes += 1
        version = str(self._writes)
        if cell is None:
            cell = self._cells[key] = _Cell(value, version, note)
        else:
            cell.value, cell.version, cell.note = value, version, note
        if lease is not None:
            ends = lease.action in (LeaseAction.RELEASE, LeaseAction.BREAK)
            cell.holder = "" if ends else lease.nonce
            cell.expires_s = now_s + lease.ttl_s
        return Applied(version)

    def delete(self, key: str, expected: str) -> CasOutcome:
        cell = self._cells.get(key)
        if cell is None or cell.version != expected:
            return CONFLICT
        del self._cells[key]
        return Applied(expected)

    def list_keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self._cells if key.startswith(prefix))


def _allows(cell: _Cell | None, lease: LeaseTerms, now_s: float) -> bool:
    if lease.action in (LeaseAction.BREAK, LeaseAction.TAKE_OVER):
        return True
    alive = cell is not None and cell.holder != "" and cell.expires_s > now_s
    mine = cell is not None and cell.holder == lease.nonce
    if lease.action is LeaseAction.ACQUIRE:
        return mine or not alive
    if lease.action is LeaseAction.HAND_OVER:
        return cell is not None and (mine or not alive or cell.holder == lease.previous)
    return alive and mine if lease.action is LeaseAction.RENEW else mine
