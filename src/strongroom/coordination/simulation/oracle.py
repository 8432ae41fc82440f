"""The invariants that every simulated run must keep, and the list of violations.

Lives here: the checks, with the true time and the store's true contents, which no node knows.
"""

from __future__ import annotations

from strongroom.coordination.schema.records import decode_lock
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.simulation.world import Node, World


class Oracle:
    """Checks the invariants of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._holds: dict[str, list[tuple[Node, int, Hold]]] = {}
        self._lost_holds: list[tuple[Node, Hold]] = []
        self._fences: dict[str, int] = {}
        self._resource_fence = 0
        self.violations: list[str] = []
        self.holds_count = 0
        self.losses_count = 0
        self.stale_writes_count = 0
        self.last_entry_s: dict[str, float] = {}
        world.observers.append(self.check)

    def note_violation(self, text: str) -> None:
        """Note a violation with its time, and stop the run.

        Later violations might only be consequences of the first.
        """
        self.violations.append(f"at {self._world.now_s:.3f} s: {text}")
        self._world.stopped = True

    def note_hold(self, node: Node, hold: Hold) -> None:
        """Note that a node holds a key from now on, and check its fence."""
        self.holds_count += 1
        self.last_entry_s[node.name] = self._world.now_s
        if hold.fence <= self._fences.get(hold.key, 0):
            self.note_violation(
                f"{node.name} got fence {hold.fence} of {hold.key} after {self._fences[hold.key]}"
            )
        self._fences[hold.key] = max(hold.fence, self._fences.get(hold.key, 0))
        self._holds.setdefault(hold.key, []).append((node, node.incarnation, hold))
        hold.on_lost(lambda reason: self._note_loss(node, hold, reason))

    def _note_loss(self, node: Node, hold: Hold, reason: str) -> None:
        self.losses_count += 1
        self._lost_holds.append((node, hold))
        if hold.remaining_s() > 0:
            self.note_violation(f"{node.name} still counts time for what it lost")
        if "renewed within" in reason or "expired" in reason:
            return
        entry = self._world.store.registers.get(hold.key, 0.0)
        if entry is not None and decode_lock(hold.key, entry.value).owner == hold.nonce:
            self.note_violation(f"{node.name} was told a loss that is none: {reason}")

    def check(self) -> None:
        """Check after every event: at most one valid hold per key, and no lost hold revives."""
        for node, hold in self._lost_holds:
            if hold.active:
                self.note_violation(f"{node.name} revived {hold.key}")
        for key, holds in self._holds.items():
            has_ended = False
            valid = []
            for node_hold in holds:
                node, incarnation, hold = node_hold
                if incarnation != node.incarnation or not node.up or not hold.active:
                    has_ended = True
                elif hold.remaining_s() > 0:
                    valid.append(node_hold)
            if len(valid) > 1:
                names = " and ".join(f"{n.name} (fence {h.fence})" for n, _, h in valid)
                self.note_violation(f"{names} both hold {key}")
            if has_ended:
                self._holds[key] = [
                    b for b in holds if b[1] == b[0].incarnation and b[0].up and b[2].active
                ]

    def write_arrives(self, fence: int) -> None:
        """Deliver a fenced write to the guarded resource, which refuses a smaller fence."""
        if fence < self._resource_fence:
            self.stale_writes_count += 1
        else:
            self._resource_fence = fence

    def check_clean(self, key: str, queue_too: bool) -> None:
        """Check the record once all callers have left.

        It must have no owner, no lost fence and, with `queue_too`, an empty queue.
        """
        entry = self._world.store.registers.get(key, 0.0)
        if entry is None:
            return
        record = decode_lock(key, entry.value)
        if record.owner is not None:
            self.note_violation(f"{key} was left held by {record.who}")
        if queue_too and record.queue:
            self.note_violation(f"{key} was left with {len(record.queue)} in its queue")
        if record.fence != self._fences.get(key, 0) and record.fence < self._fences.get(key, 0):
            self.note_violation(f"{key} has forgotten fence {self._fences[key]}: {record.fence}")
