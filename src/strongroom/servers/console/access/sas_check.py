"""Whether a pasted signature is right, and what would be refused: the server's own rules, asked.

Lives here: questions to `auth`. Must not live here: words for people (sas_words.py), who may ask
(answers.py). Signatures are compared in constant time (auth/accounts.py). The right signature and
the key are in no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from strongroom.auth import delegation
from strongroom.auth.accounts import Account, Signer, signing_key
from strongroom.auth.claims import SasKind
from strongroom.auth.policies import EffectiveRights, judge_times, resolve
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import Pairs, Sas, decode_query
from strongroom.auth.sas_signature import kind_of, string_to_sign, verify_signature
from strongroom.errors.core import StorageError
from strongroom.servers.console.access.sas_text import PastedSas
from strongroom.values import AccessPolicy

_DETAIL: Final = "AuthenticationErrorDetail"
_MISMATCH: Final = "Signature did not match"
# Fields that people change in a finished URL, and that programs add to one.
_OFTEN_CHANGED: Final = ("sp", "se", "st", "si", "sip", "spr", "ses", "rscd", "rsct")


class SignatureCheck(NamedTuple):
    """What the keys of an account say of a signature.

    Attributes:
        is_right: None if it cannot be told.
        key: the number of the key that signed, from 1 on; 0 if none did.
        text: the string that was signed to compare; None unless the signature is wrong.
        mistakes: what differs from what was signed, where a known difference explains it.
        problem: why it cannot be used, or not be checked; "" if neither.
    """

    is_right: bool | None
    key: int = 0
    text: str | None = None
    mistakes: tuple[str, ...] = ()
    problem: str = ""


def words_of(error: StorageError) -> str:
    """Return the words of a refusal, with its detail."""
    details = [text for name, text in error.extras if name == _DETAIL]
    return " ".join(details or [error.message.split("\n", 1)[0]])


def refusals(
    sas: Sas, policies: Sequence[AccessPolicy] | None, service: Service, now_wall_ticks: int
) -> tuple[EffectiveRights | None, list[str]]:
    """Return the rights of a token, and what a request with it would be refused for.

    Arguments:
        policies: of the resource; None = they are not known, so nothing that they hold is judged.
    """
    problems: list[str] = []
    effective: EffectiveRights | None = None
    if not sas.si or policies is not None:
        try:
            effective = resolve(sas, policies or ())
            judge_times(sas, effective, now_wall_ticks)
        except StorageError as error:
            problems.append(words_of(error))
    if kind_of(sas) is SasKind.USER_DELEGATION:
        try:
            delegation.judge_key(sas, service, now_wall_ticks)
        except StorageError as error:
            problems.append(words_of(error))
    return effective, problems


def check_signature(pasted: PastedSas, parsed: Sas, account: Account) -> SignatureCheck:
    """Return whether a key of the account signed a token.

    Arguments:
        parsed: the token, well formed.
    """
    if parsed.srh or parsed.srq:
        return SignatureCheck(
            None, problem="It signs headers or parameters of a request, so only a request tells."
        )
    checked: SignatureCheck | None = None
    for is_space in (False, True) if "+" in pasted.query else (False,):
        pairs = decode_query(pasted.query, is_space)
        sas = _reread(parsed, pairs)
        check = _checked(sas, pairs, pasted.target(sas, pairs, account.name), account)
        if check.is_right:
            return check
        checked = checked or check
    assert checked is not None
    return checked


def _reread(sas: Sas, pairs: Pairs) -> Sas:
    """Return the token with the values of another reading of `+`."""
    values = {name.lower(): value for name, value in pairs}
    known = {name: values[name] for name in Sas.__struct_fields__ if name in values}
    return msgspec.structs.replace(sas, **known)


def _checked(sas: Sas, pairs: Pairs, target: Target, account: Account) -> SignatureCheck:
    try:
        keys = _delegation_keys(sas, account)
        claim = verify_signature(sas, account, target, keys, None, pairs)
        return SignatureCheck(True, claim.key)
    except StorageError as error:
        problem = words_of(error)
    if not problem.startswith(_MISMATCH):
        return SignatureCheck(None, problem=problem)
    signers = tuple(map(Signer, keys)) or account.signers
    mistakes = tuple(_mistakes(sas, target, signers))
    return SignatureCheck(False, text=string_to_sign(sas, target, None, pairs), mistakes=mistakes)


def _delegation_keys(sas: Sas, account: Account) -> tuple[bytes, ...]:
    if kind_of(sas) is not SasKind.USER_DELEGATION:
        return ()
    return delegation.values_for(sas, account)


def _mistakes(sas: Sas, target: Target, signers: Sequence[Signer]) -> Iterator[str]:
    """Yield which known change of the token or its address makes the signature right."""
    for says, one, place in _variants(sas, target):
        try:
            text = string_to_sign(one, place).encode("utf-8", "surrogatepass")
        except (StorageError, ValueError):
            continue
        given = one.sig.replace(" ", "+").encode("utf-8", "surrogatepass")
        if signing_key(signers, text, given):
            yield says
            return


def _variants(sas: Sas, target: Target) -> Iterator[tuple[str, Sas, Target]]:
    values = {name: getattr(sas, name) for name in Sas.__struct_fields__}
    decoded = Sas(**{name: unquote(value) for name, value in values.items()})
    if decoded != sas:
        yield "The fields are percent-encoded twice: %25 stands where % belongs.", decoded, target
    for name in _OFTEN_CHANGED:
        if values[name]:
            without = msgspec.structs.replace(sas, **{name: ""})
            yield f"The field {name} was added after it was signed.", without, target
    if target.blob is not None:
        whole = msgspec.structs.replace(target, blob=None)
        yield "It was signed for the container or share, and sr says otherwise.", sas, whole
    for service in Service:
        if service is not target.service:
            other = msgspec.structs.replace(target, service=service)
            yield f"It was signed for the {service.value} service.", sas, other
