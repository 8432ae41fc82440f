"""The names of SIDs: the well-known ones, and those of the server's own domain.

Sources: [MS-DTYP] section 2.4.2.4 (well-known SIDs); [MS-LSAT] sections 2.2.13 (kinds), 3.1.1.1.1.

The server is a domain by itself, as a standalone server of Windows is. Its SID is that of the SDDL
names that are relative to a domain. The caller's account is its one user, whose SID is `LA`.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from strongroom.wire.smb.information.sids import NAMED, Sid

OWN_DOMAIN: Final = Sid(5, (21, 0, 0, 0))
BUILTIN: Final = Sid(5, (32,))
_NT: Final = Sid(5, ())


class SidUse(enum.IntEnum):
    """SID_NAME_USE."""

    USER = 1
    GROUP = 2
    DOMAIN = 3
    ALIAS = 4
    WELL_KNOWN = 5
    UNKNOWN = 8
    LABEL = 10


class Domain(msgspec.Struct, frozen=True):
    """What a name is relative to."""

    name: str
    sid: Sid


class Principal(msgspec.Struct, frozen=True):
    name: str
    sid: Sid
    kind: SidUse
    domain: Domain


_AUTHORITY: Final = Domain("NT AUTHORITY", _NT)
_BUILTIN_DOMAIN: Final = Domain("BUILTIN", BUILTIN)
_LABELS: Final = Domain("Mandatory Label", Sid(16, ()))
_WELL_KNOWN: Final = {
    "WD": ("Everyone", Domain("", Sid(1, ()))),
    "CO": ("CREATOR OWNER", Domain("", Sid(3, ()))),
    "CG": ("CREATOR GROUP", Domain("", Sid(3, ()))),
    "OW": ("OWNER RIGHTS", Domain("", Sid(3, ()))),
    "AN": ("ANONYMOUS LOGON", _AUTHORITY),
    "AU": ("Authenticated Users", _AUTHORITY),
    "ED": ("ENTERPRISE DOMAIN CONTROLLERS", _AUTHORITY),
    "IU": ("INTERACTIVE", _AUTHORITY),
    "LS": ("LOCAL SERVICE", _AUTHORITY),
    "NS": ("NETWORK SERVICE", _AUTHORITY),
    "NU": ("NETWORK", _AUTHORITY),
    "PS": ("SELF", _AUTHORITY),
    "RC": ("RESTRICTED", _AUTHORITY),
    "SU": ("SERVICE", _AUTHORITY),
    "SY": ("SYSTEM", _AUTHORITY),
    "WR": ("WRITE RESTRICTED", _AUTHORITY),
}
_ALIASES: Final = {
    "BA": "Administrators", "BU": "Users", "BG": "Guests", "PU": "Power Users",
    "AO": "Account Operators", "SO": "Server Operators", "PO": "Print Operators",
    "BO": "Backup Operators", "RE": "Replicator", "RU": "Pre-Windows 2000 Compatible Access",
    "RD": "Remote Desktop Users", "NO": "Network Configuration Operators",
    "MU": "Performance Monitor Users", "LU": "Performance Log Users",
    "IS": "IIS_IUSRS", "CY": "Cryptographic Operators", "ER": "Event Log Readers",
    "CD": "Certificate Service DCOM Access", "HA": "Hyper-V Administrators",
    "AA": "Access Control Assistance Operators", "RM": "Remote Management Users",
    "RA": "RDS Remote Access Servers", "ES": "RDS Endpoint Servers", "MS": "RDS Management Servers",
}  # fmt: skip
_OWN_GROUPS: Final = {"DA": "Domain Admins", "DU": "Domain Users", "DG": "Domain Guests"}
_LEVELS: Final = {
    "LW": "Low Mandatory Level", "ME": "Medium Mandatory Level",
    "MP": "Medium Plus Mandatory Level", "HI": "High Mandatory Level",
    "SI": "System Mandatory Level",
}  # fmt: skip

FIXED: Final[tuple[Principal, ...]] = (
    *(
        Principal(name, NAMED[key], SidUse.WELL_KNOWN, at)
        for key, (name, at) in _WELL_KNOWN.items()
    ),
    *(Principal(n, NAMED[key], SidUse.ALIAS, _BUILTIN_DOMAIN) for key, n in _ALIASES.items()),
    *(Principal(name, NAMED[key], SidUse.LABEL, _LABELS) for key, name in _LEVELS.items()),
    Principal(_BUILTIN_DOMAIN.name, BUILTIN, SidUse.DOMAIN, _BUILTIN_DOMAIN),
)
"""The principals of every server."""
_BY_SID: Final = {one.sid: one for one in FIXED}


def own_principals(server: str, account: str) -> tuple[Principal, ...]:
    """The principals of the server's own domain: itself, the caller, and the groups that
    descriptors may name."""
    domain = Domain(server, OWN_DOMAIN)
    return (
        Principal(account, NAMED["LA"], SidUse.USER, domain),
        *(Principal(name, NAMED[key], SidUse.GROUP, domain) for key, name in _OWN_GROUPS.items()),
        Principal(server, OWN_DOMAIN, SidUse.DOMAIN, domain),
    )


def with_sid(sid: Sid, own: tuple[Principal, ...]) -> Principal | None:
    """None if no name here stands for the SID."""
    principal = _BY_SID.get(sid)
    return (
        principal if principal is not None else next((one for one in own if one.sid == sid), None)
    )


def with_name(text: str, own: tuple[Principal, ...]) -> Principal | None:
    r"""The principal of a name, in any case, with or without its domain: `DOMAIN\name`."""
    domain, separator, name = text.casefold().rpartition("\\")
    for one in (*own, *FIXED):
        if one.name.casefold() == name and (not separator or one.domain.name.casefold() == domain):
            return one
    return None
