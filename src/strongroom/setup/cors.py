"""The CORS rules of a setup.

Lives here: comparing and setting them, for each service as a whole. Must not live here: what rules
are valid (semantics/core/cors.py).
"""

from __future__ import annotations

from strongroom.service_properties import ServiceProperties
from strongroom.services.core.account import properties
from strongroom.services.core.runner import Services
from strongroom.setup.document import AccountSetup
from strongroom.setup.report import SetupReport
from strongroom.setup.requests import Asked, OwnRequests
from strongroom.wire.core.service_properties_xml import write_service_properties


async def make_cors(
    services: Services, requests: OwnRequests, report: SetupReport, account: AccountSetup
) -> None:
    """Give each service that has no rules those of the file, and compare the others."""
    for service, wanted in account.cors_rules().items():
        found = (await properties(services, service, account.name)).cors or ()
        what = f"CORS rules of the {service.value} service of {account.name}"
        if found == wanted:
            report.left(what)
        elif found and not report.overwrites:
            report.left(what)
            report.differs(what)
        else:
            body = write_service_properties(ServiceProperties(cors=wanted))
            target = "/?restype=service&comp=properties"
            await requests.do(Asked(service, account.name, "PUT", target, (), body))
            (report.set if found else report.created)(what)
