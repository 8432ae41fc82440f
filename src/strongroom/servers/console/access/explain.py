"""A shared access signature in words: its fields, what it permits, until when, and on what.

Lives here: the document of a pasted text. Must not live here: tables of words (sas_words.py), the
check of the signature (sas_check.py), who may have it checked (answers.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

import msgspec

from strongroom.auth.accounts import Account
from strongroom.auth.policies import EffectiveRights
from strongroom.auth.sas import Pairs, Sas, decode_query, parse_sas
from strongroom.auth.sas_signature import kind_of
from strongroom.errors.core import StorageError
from strongroom.servers.console.access import sas_words
from strongroom.servers.console.access.sas_check import check_signature, refusals, words_of
from strongroom.servers.console.access.sas_text import PastedSas
from strongroom.servers.console.api.access import (
    ExplainedSas,
    NamedService,
    SasField,
    SasRight,
    SasState,
    SasVerdict,
)
from strongroom.times import parse_iso8601
from strongroom.values import AccessPolicy, iso7

MASK: Final = "(masked)"
_SIGNATURE: Final = "sig"


def explained(
    pasted: PastedSas, policies: Sequence[AccessPolicy] | None, now_wall_ticks: int
) -> ExplainedSas:
    """Return a token as it is written, its signature not checked.

    Arguments:
        policies: the stored policies of the resource; None = they are not known.
    """
    service = pasted.likely_service()
    pairs = decode_query(pasted.query)
    written = pasted.written()
    sas, problems = _parsed(pasted)
    effective = None
    if not problems:
        effective, problems = refusals(sas, policies, service, now_wall_ticks)
    kind = kind_of(sas)
    permission = effective.permission if effective is not None else sas.sp
    starts, expires = _times(sas, effective)
    target = pasted.target(sas, pairs, "") if pasted.url is not None else None
    return ExplainedSas(
        kind=kind.value,
        account=pasted.account,
        service=cast("NamedService", "" if pasted.service is None else pasted.service.value),
        container=(target.container or "") if target is not None else "",
        reaches=sas_words.reaches(sas, kind, target),
        fields=tuple(_field(name, value) for name, value in written.items()),
        permits=tuple(
            SasRight(letter=letter, text=text)
            for letter in permission
            if (text := sas_words.right(letter, kind, service))
        ),
        starts_time=None if starts is None else iso7(starts),
        expires_time=None if expires is None else iso7(expires),
        state=_state(starts, expires, now_wall_ticks),
        policy=sas.si,
        addresses=sas_words.addresses(sas.sip),
        protocols=sas_words.protocols(sas.spr),
        problems=_masked(problems, pairs),
        unchecked="",
    )


def with_check(found: ExplainedSas, pasted: PastedSas, account: Account) -> ExplainedSas:
    try:
        sas = parse_sas(decode_query(pasted.query), pasted.likely_service())
    except StorageError:
        return unchecked(found, "It is not well formed, so there is nothing to check.")
    if pasted.url is None and not (sas.ss or sas.srt):
        return unchecked(found, "The signature covers the resource: paste the whole URL.")
    check = check_signature(pasted, sas, account)
    if check.is_right is None:
        return unchecked(found, *_masked([check.problem], decode_query(pasted.query)))
    verdict: SasVerdict = "right" if check.is_right else "wrong"
    return msgspec.structs.replace(
        found,
        signature=verdict,
        signing_key=check.key,
        string_to_sign=check.text,
        mistakes=check.mistakes,
    )


def unchecked(found: ExplainedSas, why: str) -> ExplainedSas:
    return msgspec.structs.replace(found, unchecked=why)


def _parsed(pasted: PastedSas) -> tuple[Sas, list[str]]:
    """Return the token, and why it is not well formed."""
    try:
        return parse_sas(decode_query(pasted.query), pasted.likely_service()), []
    except StorageError as error:
        return Sas(**pasted.written()), [words_of(error)]


def _times(sas: Sas, effective: EffectiveRights | None) -> tuple[int | None, int | None]:
    if effective is not None:
        return effective.start, effective.expiry
    return parse_iso8601(sas.st) if sas.st else None, parse_iso8601(sas.se) if sas.se else None


def _state(starts: int | None, expires: int | None, now: int) -> SasState:
    if expires is not None and now >= expires:
        return "expired"
    if starts is not None and now < starts:
        return "not yet"
    return "unknown" if expires is None else "valid"


def _field(name: str, value: str) -> SasField:
    shown = MASK if name == _SIGNATURE else value
    return SasField(name=name, value=shown, meaning=sas_words.meaning(name, value))


def _masked(texts: Iterable[str], pairs: Pairs) -> tuple[str, ...]:
    """Return texts without the signatures that were sent."""
    secrets = [value for name, value in pairs if name.lower() == _SIGNATURE and value]
    masked = []
    for text in texts:
        for secret in secrets:
            text = text.replace(secret, MASK)
        masked.append(text)
    return tuple(masked)
