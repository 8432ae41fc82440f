"""An SMB listener with all its commands, and its counts as metrics.

Lives here: the composition of a listener. The names of the metrics are in docs/operating.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from strongroom.auth.accounts import Accounts
from strongroom.clock import Clock
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.observers import RequestObserver
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.opens.opens import Opens

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


def smb_listener(
    services: Services,
    accounts: Accounts,
    clock: Clock,
    *,
    requires_encryption: bool,
    budget: ConnectionBudget,
    observers: Sequence[RequestObserver] = (),
) -> SmbListener:
    """For the shares of all accounts."""
    return SmbListener(
        services,
        accounts,
        clock,
        SmbSettings(requires_encryption=requires_encryption),
        connect_share=connect_share,
        commands=FILE_COMMANDS,
        budget=budget,
        observers=observers,
    )


class SmbMetrics:
    def __init__(self, listener: SmbListener) -> None:
        self._listener = listener

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        counts, shared = self._listener.shared.counts, self._listener.shared
        requests = CounterMetricFamily(
            "strongroom_smb_requests",
            "Messages of SMB answered, by NTSTATUS.",
            labels=("command", "status"),
        )
        for (command, status), count in counts.requests.items():
            requests.add_metric((command, f"0x{status:08X}"), count)
        yield requests
        opens = shared.services.held.of(Opens)
        outcomes = CounterMetricFamily(
            "strongroom_smb_break_answers",
            "Break notifications that need an answer, by what became of them.",
            labels=("outcome",),
        )
        for outcome in ("asked", "acknowledged", "timed_out"):
            outcomes.add_metric((outcome,), getattr(opens.counts, outcome))
        yield outcomes
        for name, what, count in (
            ("breaks", "Break notifications sent.", counts.breaks),
            ("logon_failures", "Authentications of SMB that failed.", counts.logon_failures),
            ("received_bytes", "Bytes of SMB received.", counts.received_bytes),
            ("sent_bytes", "Bytes of SMB sent.", counts.sent_bytes),
        ):
            yield CounterMetricFamily(f"strongroom_smb_{name}", what, value=count)
        sessions = [session for _, session in shared.sessions.values()]
        waiting = opens.durable.waiting_count
        for name, what, count in (
            ("connections", "Connections of SMB open.", self._listener.connection_count),
            ("sessions", "Sessions of SMB authenticated.", sum(one.is_valid for one in sessions)),
            ("opens", "Files, directories and pipes open.", sum(len(s.opens) for s in sessions)),
            ("locks", "Byte-range locks, with requests that wait for one.", opens.counts.locks),
            ("disconnected_handles", "Durable handles that wait for their clients.", waiting),
        ):
            yield GaugeMetricFamily(f"strongroom_smb_{name}", what, value=count)
