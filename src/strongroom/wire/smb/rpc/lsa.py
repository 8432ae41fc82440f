"""The calls of lsarpc that clients need to show the names of SIDs, and to find SIDs by names.

One function for each call, from its stub to the stub of its result. The names: principals.py; PDUs:
pipe.py. Sources: [MS-LSAT] sections 2.2 and 3.1.4; [MS-LSAD] sections 2.2.4 and 3.1.4.4; [MS-DTYP]
sections 2.3.10 and 2.4.2.3.

A policy handle has no state, since nothing can be changed. All clients get the same one, which
stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from strongroom.wire.smb.information.sids import Sid, sid_number_text
from strongroom.wire.smb.rpc.calls import Inventory, RemoteCall
from strongroom.wire.smb.rpc.ndr import NdrReader, NdrWriter, UnknownHandle
from strongroom.wire.smb.rpc.principals import (
    OWN_DOMAIN,
    Domain,
    Principal,
    SidUse,
    own_principals,
    with_name,
    with_sid,
)
from strongroom.wire.smb.structures import MalformedMessage

_HANDLE: Final = bytes(4) + b"strongroom policy"[:16]
_OK: Final = 0
_SOME_NOT_MAPPED: Final = 0x0000_0107
_INVALID_PARAMETER: Final = 0xC000_000D
_NONE_MAPPED: Final = 0xC000_0073
_NO_DOMAIN: Final = 0xFFFF_FFFF
_NAMES_MAX: Final = 1000
_MAX_ENTRIES: Final = 32
_WORKGROUP: Final = "WORKGROUP"
_PRIMARY_DOMAIN: Final = 3
_ACCOUNT_DOMAIN: Final = 5
_DNS_DOMAIN: Final = 12


def _check_handle(stub: NdrReader) -> None:
    if stub.raw(len(_HANDLE), 4) != _HANDLE:
        raise UnknownHandle("no handle of a policy")


def _own(inventory: Inventory) -> tuple[Principal, ...]:
    return own_principals(inventory.server, inventory.account)


def open_policy(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer LsarOpenPolicy and LsarOpenPolicy2. Each caller may look names up, and no more, so the
    arguments make no difference."""
    return _handle_answer(_HANDLE)


def close(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    _check_handle(stub)
    return _handle_answer(bytes(len(_HANDLE)))


def _handle_answer(handle: bytes) -> NdrWriter:
    out = NdrWriter()
    out.raw(handle)
    out.number(_OK)
    return out


def query_policy(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer LsarQueryInformationPolicy and its second version: the domains. The server is member
    of none, so the primary domain is a workgroup without a SID."""
    _check_handle(stub)
    level, out = stub.short(), NdrWriter()
    if level not in (_PRIMARY_DOMAIN, _ACCOUNT_DOMAIN, _DNS_DOMAIN):
        out.null()
        out.number(_INVALID_PARAMETER)
        return out
    out.pointer()
    out.short(level)
    out.counted_text(inventory.server if level == _ACCOUNT_DOMAIN else _WORKGROUP)
    if level == _DNS_DOMAIN:
        out.counted_text("")
        out.counted_text("")
        out.raw(bytes(16))
    if level == _ACCOUNT_DOMAIN:
        out.sid(OWN_DOMAIN)
    else:
        out.null()
    out.write_deferred()
    out.number(_OK)
    return out


def get_user_name(stub: NdrReader, inventory: Inventory) -> NdrWriter:
    """Answer LsarGetUserName: the caller's account, and its domain if that is asked for."""
    stub.unique_string()
    if stub.number():
        _skip_counted(stub)
    wants_domain, out = bool(stub.number()), NdrWriter()
    out.pointer()
    out.counted_text(inventory.account)
    out.write_deferred()
    if wants_domain:
        out.pointer()
        out.pointer()
        out.counted_text(inventory.server)
        out.write_deferred()
    else:
        out.null()
    out.number(_OK)
    return out


def _skip_counted(stub: NdrReader) -> None:
    stub.number()
    if stub.number():
        stub.string()


# Look-ups.


class _Domains:
    """The list of domains that the entries of an answer refer to by index."""

    def __init__(self) -> None:
        self._found: list[Domain] = []

    def index(self, principal: Principal | None) -> int:
        """-1 without a principal."""
        if principal is None:
            return _NO_DOMAIN
        if principal.domain not in self._found:
            self._found.append(principal.domain)
        return self._found.index(principal.domain)

    def write(self, out: NdrWriter) -> None:
        """Write LSAPR_REFERENCED_DOMAIN_LIST behind a pointer."""
        out.pointer()
        out.number(len(self._found))
        out.array_pointer(len(self._found))
        out.number(_MAX_ENTRIES)
        if self._found:
            out.number(len(self._found))
        for domain in self._found:
            out.counted_text(domain.name)
            out.sid(domain.sid)
        out.write_deferred()


_WriteEntry = Callable[[NdrWriter, Principal | None, int], None]


def _answer(principals: Sequence[Principal | None], write: Sequence[_WriteEntry]) -> NdrWriter:
    """`write` says for each principal how its entry is written."""
    domains, out = _Domains(), NdrWriter()
    places = [domains.index(one) for one in principals]
    domains.write(out)
    out.number(len(principals))
    out.array_pointer(len(principals))
    if principals:
        out.number(len(principals))
    for one, place, entry in zip(principals, places, write, strict=True):
        entry(out, one, place)
    out.write_deferred()
    mapped = sum(one is not None for one in principals)
    out.number(mapped)
    out.number(_OK if mapped == len(principals) else _SOME_NOT_MAPPED if mapped else _NONE_MAPPED)
    return out


def _kind(principal: Principal | None) -> int:
    return SidUse.UNKNOWN if principal is None else principal.kind


def _lookup_sids(
    stub: NdrReader, inventory: Inventory, *, has_handle: bool = True, has_flags: bool = True
) -> NdrWriter:
    """Answer LsarLookupSids and its later versions, whose entries have flags. LsarLookupSids3 has
    no handle."""
    if has_handle:
        _check_handle(stub)
    sids, own = _read_sids(stub), _own(inventory)

    def entry(sid: Sid, out: NdrWriter, principal: Principal | None, place: int) -> None:
        out.short(_kind(principal))
        out.counted_text(sid_number_text(sid) if principal is None else principal.name)
        out.number(place)
        if has_flags:
            out.number(0)

    return _answer([with_sid(one, own) for one in sids], [partial(entry, one) for one in sids])


def _read_sids(stub: NdrReader) -> list[Sid]:
    """Read LSAPR_SID_ENUM_BUFFER."""
    count = stub.number()
    if not stub.number():
        return []
    _check_count(count, stub.number())
    pointers = [stub.number() for _ in range(count)]
    if not all(pointers):
        raise MalformedMessage("a SID is missing")
    return [stub.sid() for _ in pointers]


def _check_count(count: int, conformance: int) -> None:
    if count != conformance or count > _NAMES_MAX:
        raise MalformedMessage(f"a list of {count} entries; {_NAMES_MAX} are allowed")


def _relative_entry(
    out: NdrWriter, principal: Principal | None, place: int, *, has_flags: bool
) -> None:
    """Write an entry that has the last number of a SID only; a domain has none."""
    out.short(_kind(principal))
    is_domain = principal is None or principal.kind is SidUse.DOMAIN
    out.number(_NO_DOMAIN if principal is None or is_domain else principal.sid.sub_authorities[-1])
    out.number(place)
    if has_flags:
        out.number(0)


def _whole_entry(out: NdrWriter, principal: Principal | None, place: int) -> None:
    out.short(_kind(principal))
    if principal is None:
        out.null()
    else:
        out.sid(principal.sid)
    out.number(place)
    out.number(0)


def _lookup_names(
    stub: NdrReader, inventory: Inventory, *, entry: _WriteEntry, has_handle: bool = True
) -> NdrWriter:
    """Answer LsarLookupNames and its later versions. LsarLookupNames4 has no handle.

    Arguments:
        entry: how the version writes one entry.
    """
    if has_handle:
        _check_handle(stub)
    own = _own(inventory)
    principals = [with_name(name, own) for name in _read_names(stub)]
    return _answer(principals, [entry] * len(principals))


def _read_names(stub: NdrReader) -> list[str]:
    """Read a conformant array of RPC_UNICODE_STRING."""
    count = stub.number()
    _check_count(count, stub.number())
    pointers = []
    for _ in range(count):
        stub.number()  # both lengths, which the string itself repeats
        pointers.append(stub.number())
    return [stub.string() if pointer else "" for pointer in pointers]


CALLS: Final[Mapping[int, RemoteCall]] = {
    0: close,
    6: open_policy,
    7: query_policy,
    14: partial(_lookup_names, entry=partial(_relative_entry, has_flags=False)),
    15: partial(_lookup_sids, has_flags=False),
    44: open_policy,
    45: get_user_name,
    46: query_policy,
    57: _lookup_sids,
    58: partial(_lookup_names, entry=partial(_relative_entry, has_flags=True)),
    68: partial(_lookup_names, entry=_whole_entry),
    76: partial(_lookup_sids, has_handle=False),
    77: partial(_lookup_names, entry=_whole_entry, has_handle=False),
}
"""By operation number."""
