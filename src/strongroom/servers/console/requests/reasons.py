"""Why a request was refused: the rule, the string to sign, and what differed.

Lives here: the answer that is put together of rules, mistakes and variants. Must not live here:
their tables (rules.py, mistakes.py, signatures.py). Neither a key nor a right signature is in it.
The string to sign is made when somebody reads it, and only for the account's owner.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.accounts import Account
from strongroom.servers.console.api.documents import Why
from strongroom.servers.console.requests.kept import FullRecord
from strongroom.servers.console.requests.masking import Masking
from strongroom.servers.console.requests.mistakes import (
    REFUSALS_OF_ACCESS,
    Case,
    found_mistakes,
)
from strongroom.servers.console.requests.received import credential_of, signed_string
from strongroom.servers.console.requests.rules import link_of, refused_by, rule_of
from strongroom.servers.console.requests.scope import SERVICES
from strongroom.servers.console.requests.signatures import matching_variant
from strongroom.wire.core.http import Request

_MISMATCHES: Final = ("MAC signature found", "Signature did not match")
_CUT: Final = "The headers were longer than what is kept, so the string to sign cannot be shown."
_WRONG_KEY: Final = (
    "No known variant of the string to sign has this signature. Either it was made with another "
    "key, or something changed the request on its way. The two cannot be told apart. Compare the "
    "string to sign with the client's, line by line."
)
_SAS_MISMATCH: Final = (
    "The SAS was signed with another key, or one of its parameters was changed. The two cannot be "
    "told apart. Compare the string to sign with that of the program that made the SAS."
)


def why(
    full: FullRecord, request: Request, masking: Masking, owner: Account | None, *, is_cut: bool
) -> Why:
    """Return why a request was refused.

    Arguments:
        request: made of the head that was kept.
        owner: the account, if the viewer has proven its key; None = the viewer has not.
        is_cut: whether a part of the head is missing.
    """
    record = full.short
    said = "" if full.refusal is None else full.refusal.text
    rule = rule_of(record.code, said, SERVICES.get(record.service))
    case = Case(record, request, said)
    mistakes = found_mistakes(case)
    signed = None
    if owner is not None and record.status in REFUSALS_OF_ACCESS:
        signed = None if is_cut else signed_string(request, full.short)
        mistakes += _about_signature(case, owner, is_cut)
    lines = (
        _without_string_to_sign(said),
        rule.text and f"{rule.number or 'Rule'}: {rule.text}",
        (by := refused_by(full.refusal)) and f"Refused by {by}.",
    )
    return Why(
        rule=rule.number,
        text=masking.text("\n".join(line for line in lines if line)),
        link=link_of(rule),
        string_to_sign=None if signed is None else masking.signed_text(signed),
        mistakes=tuple(masking.text(one) for one in mistakes),
    )


def _about_signature(case: Case, owner: Account, is_cut: bool) -> list[str]:
    if not any(one in case.text for one in _MISMATCHES):
        return []
    if is_cut:
        return [_CUT]
    credential, service = credential_of(case.request), SERVICES.get(case.record.service)
    if credential is None or service is None:
        return [_SAS_MISMATCH]
    difference = matching_variant(case.request, credential, service, owner)
    return [_WRONG_KEY if difference is None else difference]


def _without_string_to_sign(text: str) -> str:
    """Return the server's words without the string to sign, which has a place of its own."""
    for start in (" Server used following string to sign", " String to sign used was"):
        text = text.partition(start)[0]
    return text.removesuffix(".") + "." if text else ""
