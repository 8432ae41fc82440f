"""The order in which a setup is applied to a server that nobody can reach yet.

Lives here: that order. See docs/setup.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from strongroom.auth.accounts import Accounts
from strongroom.clock import Clock
from strongroom.servers.service_listeners import Contexts
from strongroom.services.core.runner import Services
from strongroom.setup.blobs import BlobsSetup
from strongroom.setup.cors import make_cors
from strongroom.setup.document import Located, SetupDocument, parse
from strongroom.setup.files import read_setup
from strongroom.setup.places import PlacesSetup
from strongroom.setup.report import SetupReport
from strongroom.setup.requests import OwnRequests


@dataclass(frozen=True, slots=True)
class ReadSetup:
    """A setup that was read and checked.

    Attributes:
        folder: the folder from which its paths are seen.
    """

    document: SetupDocument
    located: Located
    folder: Path


def read(path: Path) -> ReadSetup:
    """Read and check a setup file, and the folders that it names. Raises: SetupError."""
    document, located = parse(str(path), read_setup(path))
    folder = path.resolve().parent
    for number, account in enumerate(document.accounts):
        for index, container in enumerate(account.containers):
            if container.folder is not None and not os.path.isdir(folder / container.folder):
                at: list[str | int] = ["accounts", number, "containers", index, "folder"]
                raise located.error(at, f"{folder / container.folder} is not a folder")
    return ReadSetup(document, located, folder)


async def apply(
    setup: ReadSetup,
    services: Services,
    contexts: Contexts,
    accounts: Accounts,
    clock: Clock,
    report: SetupReport,
) -> None:
    """Make what is missing in the store. The accounts exist already. Raises: SetupError."""
    requests = OwnRequests(contexts, accounts, clock)
    places = PlacesSetup(services, requests, report)
    blobs = BlobsSetup(requests, report, setup.folder)
    for account in setup.document.accounts:
        await make_cors(services, requests, report, account)
        await places.make_all(account)
        await blobs.make_all(account)
