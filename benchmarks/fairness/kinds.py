"""A kind of long work, and the server that it runs on.

Lives here: the form of a kind, and kinds that send one HTTP request again and again. Must not live
here: the kinds themselves, the measurement (measuring.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.endpoint import Endpoint, UnexpectedAnswer
from benchmarks.engine import Load, Step
from benchmarks.samba import SmbShare
from strongroom.account_switches import Switches
from strongroom.auth.accounts import development_account
from strongroom.servers.identities.accounts_file import change_accounts

CLIENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Running:
    """The running server.

    Arguments:
        endpoints: the services, by name.
        share: the share that is mounted over SMB.
        folder: for the files of clients.
        accounts: the accounts file of the server.
    """

    endpoints: Mapping[str, Endpoint]
    share: SmbShare
    folder: Path
    accounts: Path

    def switch(self, switches: Switches) -> None:
        """Set the switches of the account."""
        account = development_account().switched(switches)
        change_accounts(self.accounts, lambda _: (account,))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of long work.

    Arguments:
        prepare: creates what the work needs; called once.
        begin: does the work with 8 clients for some seconds, and returns the number of answers.
            Raises UnexpectedAnswer.
    """

    name: str
    prepare: Callable[[Running], None]
    begin: Callable[[Running, float], int]


def nothing(_: Endpoint) -> None:
    """Prepare nothing: the data of an earlier kind is used."""


def requests(
    name: str,
    prepare: Callable[[Endpoint], None],
    step_of: Callable[[Endpoint], Step],
    service: str = "blob",
) -> Kind:
    """Return a kind that sends one request again and again.

    Arguments:
        step_of: prepares a round, and returns its request. It is called once per round.
    """

    def begin(running: Running, duration_s: float) -> int:
        endpoint = running.endpoints[service]
        report = endpoint.load(Load((step_of(endpoint),), CLIENTS, duration_s))
        if report.bad:
            raise UnexpectedAnswer(f"{name}: {report.bad} answers were not expected")
        return report.steps[0].count

    return Kind(name, lambda running: prepare(running.endpoints[service]), begin)


def get(path: str) -> Callable[[Endpoint], Step]:
    """Return a GET as the request of a kind."""
    return lambda endpoint: endpoint.step("long", "GET", path, 200)


def check_listed(endpoint: Endpoint, path: str, element: str, count: int) -> None:
    """Check that the answer of a listing has an element so many times. Raises: UnexpectedAnswer."""
    status, answer = endpoint.call("GET", path)
    found = answer.count(element.encode())
    if status != 200 or found != count:
        raise UnexpectedAnswer(f"GET {path}: {status}, {found} times {element}, not {count} times")
