"""The parameters of a shared access signature: parses them and checks what needs the token only.

Source: "Create a service SAS", "Create an account SAS", "Create a user delegation SAS". The letters
of `sp` may have any order, since the client libraries disagree about it. Unknown and repeated
letters are refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import msgspec

from strongroom.auth.refusals import authentication_failed
from strongroom.auth.request import Service
from strongroom.errors.core import invalid_query
from strongroom.times import parse_iso8601
from strongroom.values import is_cacheable, is_encryption_scope

ACCOUNT_SAS_SINCE: Final = "2015-04-05"
SCOPE_SINCE: Final = "2020-12-06"
USER_DELEGATION_SINCE: Final = "2018-11-09"

# Letters of `sp` by the service that is called; an account SAS may hold those of every service.
PERMISSION_LETTERS: Final = {
    Service.BLOB: "racwdxyltfmeopi",
    Service.QUEUE: "raup",
    Service.TABLE: "raud",
    Service.FILE: "rcwdl",
}
ACCOUNT_LETTERS: Final = "rwdxylacuptfi"
# Letters added later, by the first `sv` that may have them (blob service and account SAS).
LETTERS_SINCE: Final = {
    "c": "2015-04-05",
    "x": "2019-12-12",
    "t": "2019-12-12",
    "f": "2019-12-12",
    "y": "2020-02-10",
    "m": "2020-02-10",
    "e": "2020-02-10",
    "o": "2020-02-10",
    "i": "2020-06-12",
}
# `sr` by service, with the version from which each value exists.
RESOURCES: Final = {
    Service.BLOB: {"b": "", "c": "", "bs": "2018-11-09", "bv": "2018-11-09", "d": "2020-02-10"},
    Service.QUEUE: {"": ""},
    Service.TABLE: {"": ""},
    Service.FILE: {"f": "2015-02-21", "s": "2015-02-21"},
}
# The last value is not documented, but clients send it. The signature covers it as sent.
PROTOCOLS: Final = ("", "https", "https,http", "http,https")
_VERSION: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
DEPTH: Final = re.compile(r"[0-9]{1,3}")


class Sas(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A token's parameters by their names in the URL, decoded; "" = absent.

    `sp` permission, `st` start, `se` expiry, `si` stored policy, `sip` addresses, `spr` protocol.
    `sv` version, `sr` resource, `sdd` directory depth, `ss` services, `srt` resource types.
    `ses` encryption scope, `rs..` response headers, `tn` table, `spk srk epk erk` its key range.
    `sk..` the user delegation key, `saoid suoid scid sduoid` users. `srh srq` headers and
    parameters that are signed.
    """

    sig: str = ""
    sv: str = ""
    sp: str = ""
    st: str = ""
    se: str = ""
    si: str = ""
    sip: str = ""
    spr: str = ""
    sr: str = ""
    sdd: str = ""
    ss: str = ""
    srt: str = ""
    ses: str = ""
    rscc: str = ""
    rscd: str = ""
    rsce: str = ""
    rscl: str = ""
    rsct: str = ""
    tn: str = ""
    spk: str = ""
    srk: str = ""
    epk: str = ""
    erk: str = ""
    skoid: str = ""
    sktid: str = ""
    skt: str = ""
    ske: str = ""
    sks: str = ""
    skv: str = ""
    skdutid: str = ""
    sduoid: str = ""
    saoid: str = ""
    suoid: str = ""
    scid: str = ""
    srh: str = ""
    srq: str = ""

    def __repr__(self) -> str:
        """Without the signature, so that nobody can use a token from a log."""
        return (
            f"Sas(sv={self.sv!r}, sr={self.sr!r}, sp={self.sp!r}, si={self.si!r}, se={self.se!r})"
        )


PARAMETERS: Final = frozenset(Sas.__struct_fields__)
Pairs = tuple[tuple[str, str], ...]
_REMEMBERED: Final = 1024


def decode_query(query: str | None, plus_is_space: bool = False) -> Pairs:
    """(name, value) of every query parameter, percent-decoded as UTF-8, in order.

    Arguments:
        query: as sent, without the question mark; latin-1.
        plus_is_space: whether `+` stands for a space; otherwise it stands for itself.
    """
    if not query:
        return ()
    decoded = _decoded_remembered if is_cacheable(query) else _decoded
    return decoded(query, plus_is_space)


def _decoded(query: str, plus_is_space: bool) -> Pairs:
    text = query.replace("+", " ") if plus_is_space else query
    cut = (piece.partition("=") for piece in text.split("&") if piece)
    if "%" not in text and text.isascii():
        return tuple((name, value) for name, _, value in cut)
    return tuple((_unquoted(name), _unquoted(value)) for name, _, value in cut)


_decoded_remembered: Final = lru_cache(_REMEMBERED)(_decoded)


def _unquoted(text: str) -> str:
    # A fast path: most parts need no decoding, and every request with a token calls this.
    return unquote(text) if "%" in text or not text.isascii() else text


def is_sas(query: str) -> bool:
    """Whether a query is meant to contain a SAS: a signature, or parameters that accompany one."""
    return _is_sas_remembered(query) if is_cacheable(query) else _is_sas(query)


def _is_sas(query: str) -> bool:
    names = {name.lower() for name, _ in decode_query(query)}
    return "sig" in names or "sv" in names or {"sp", "se"} <= names


_is_sas_remembered: Final = lru_cache(_REMEMBERED)(_is_sas)


def token_of(query: str) -> str:
    """The parameters of a query that can belong to a token, as they were sent."""
    return "&".join([piece for piece in query.split("&") if _may_belong(piece.partition("=")[0])])


def _may_belong(name: str) -> bool:
    # An encoded name may be any name.
    return name.lower() in PARAMETERS or "%" in name or not name.isascii()


def parse_sas(pairs: Iterable[tuple[str, str]], service: Service) -> Sas:
    """The token among a request's decoded query parameters; other parameters are ignored.

    Arguments:
        service: the called service; it decides which letters and resources exist.
    """
    values: dict[str, str] = {}
    for given, value in pairs:
        name = given.lower()
        if name not in PARAMETERS:
            continue
        if name in values:
            raise invalid_query(name, value, "It is given more than once.")
        if _CONTROL.search(value):
            # A line end inside a field could make two different tokens sign the same string.
            raise _malformed(name, value, "it holds a control character")
        values[name] = value
    sas = Sas(**values)
    if not sas.sig:
        raise authentication_failed("The shared access signature has no signature (sig).")
    _check_version(sas)
    _check_times(sas)
    _check_limits(sas)
    _check_scope(sas)
    if sas.ss or sas.srt:
        _check_account_sas(sas)
    else:
        _check_resource_sas(sas, service)
    return sas


def _malformed(name: str, value: str, reason: str) -> Exception:
    return authentication_failed(
        f"The shared access signature is not well formed: {name}='{value}': {reason}."
    )


def _check_version(sas: Sas) -> None:
    if sas.sv and not _VERSION.fullmatch(sas.sv):
        raise _malformed("sv", sas.sv, "it must be a service version, YYYY-MM-DD")


def _check_times(sas: Sas) -> None:
    for name, value in (("st", sas.st), ("se", sas.se), ("skt", sas.skt), ("ske", sas.ske)):
        if value and parse_iso8601(value) is None:
            raise _malformed(
                name, value, "it must be a UTC time: YYYY-MM-DD, YYYY-MM-DDThh:mmZ or :ssZ"
            )


def _check_limits(sas: Sas) -> None:
    if sas.spr not in PROTOCOLS:
        raise _malformed("spr", sas.spr, "it must be 'https' or 'https,http'")
    if sas.sip and parse_addresses(sas.sip) is None:
        raise _malformed("sip", sas.sip, "it must be one IPv4 address, or two with a hyphen")


def _check_scope(sas: Sas) -> None:
    if sas.ses and sas.sv >= SCOPE_SINCE and not is_encryption_scope(sas.ses):
        raise _malformed("ses", sas.ses, "it must be the name of an encryption scope")


def _check_letters(name: str, value: str, letters: str) -> None:
    unknown = [letter for letter in value if letter not in letters]
    if unknown:
        raise _malformed(name, value, f"'{unknown[0]}' is none of '{letters}'")
    if len(set(value)) != len(value):
        raise _malformed(name, value, "a letter is repeated")


def _check_blob_letters(sas: Sas) -> None:
    """Refuse permissions that were added after the token's version."""
    for letter in sas.sp:
        since = LETTERS_SINCE.get(letter, "")
        if sas.sv < since:
            raise _malformed("sp", sas.sp, f"'{letter}' exists from sv={since}")


def _check_account_sas(sas: Sas) -> None:
    for name, value in (("ss", sas.ss), ("srt", sas.srt)):
        if not value:
            raise _malformed(name, value, "an account SAS needs both ss and srt")
    if sas.sv < ACCOUNT_SAS_SINCE:
        raise _malformed("sv", sas.sv, f"an account SAS exists from {ACCOUNT_SAS_SINCE}")
    for name, value in (("si", sas.si), ("skoid", sas.skoid)):
        if value:
            raise _malformed(name, value, "an account SAS cannot have it")
    _check_letters("ss", sas.ss, "bqtf")
    _check_letters("srt", sas.srt, "sco")
    _check_letters("sp", sas.sp, ACCOUNT_LETTERS)
    _check_blob_letters(sas)


def _check_resource_sas(sas: Sas, service: Service) -> None:
    known = RESOURCES[service]
    since = known.get(sas.sr)
    if since is None:
        raise _malformed("sr", sas.sr, f"it must be one of {', '.join(filter(None, known))}")
    if sas.sv < since:
        raise _malformed("sr", sas.sr, f"it exists from sv={since}")
    if sas.sr == "d" and not DEPTH.fullmatch(sas.sdd):
        raise _malformed("sdd", sas.sdd, "sr=d needs the directory's depth")
    _check_letters("sp", sas.sp, PERMISSION_LETTERS[service])
    if service is Service.BLOB:
        _check_blob_letters(sas)
    if service is Service.TABLE:
        _check_table(sas)
    if sas.skoid:
        _check_user_delegation(sas)


def _check_table(sas: Sas) -> None:
    if not sas.tn:
        raise _malformed("tn", "", "a SAS for a table names the table")
    for row, partition in (("srk", "spk"), ("erk", "epk")):
        if getattr(sas, row) and not getattr(sas, partition):
            raise _malformed(row, getattr(sas, row), f"it needs {partition}")


def _check_user_delegation(sas: Sas) -> None:
    if sas.sv < USER_DELEGATION_SINCE:
        raise _malformed("sv", sas.sv, f"a user delegation SAS exists from {USER_DELEGATION_SINCE}")
    if sas.si:
        raise _malformed("si", sas.si, "a user delegation SAS cannot have it")
    for name in ("sktid", "skt", "ske", "sks", "skv"):
        if not getattr(sas, name):
            raise _malformed(name, "", "a user delegation SAS needs it")


def parse_addresses(
    text: str,
) -> tuple[ipaddress.IPv4Address, ipaddress.IPv4Address] | None:
    """(first, last) of `sip`, both inclusive; None if `text` is malformed."""
    first, hyphen, last = text.partition("-")
    try:
        low = ipaddress.IPv4Address(first)
        high = ipaddress.IPv4Address(last) if hyphen else low
    except ValueError:
        return None
    return (low, high) if low <= high else None
