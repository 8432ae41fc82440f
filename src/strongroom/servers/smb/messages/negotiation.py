"""NEGOTIATE: the choices that the server makes from a client's offer.

Lives here: the choice of dialect, cipher and signing algorithm. Must not live here: the messages'
layouts (wire/smb/setup/). Source: [MS-SMB2] section 3.3.5.4; smb.md 1.10, 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom.errors.file import STATUS_INVALID_PARAMETER, STATUS_REQUEST_NOT_ACCEPTED
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import Negotiated
from strongroom.wire.smb.setup.negotiate import (
    CAN_ENCRYPT,
    CAN_LEASE,
    CAN_USE_LARGE_MTU,
    DIALECT_210,
    DIALECT_300,
    DIALECT_302,
    DIALECT_311,
    SIGNING_ENABLED,
    SIGNING_REQUIRED,
    NegotiateRequest,
)
from strongroom.wire.smb.setup.negotiate_contexts import (
    AES_128_CCM,
    AES_128_GCM,
    AES_256_CCM,
    AES_256_GCM,
    AES_CMAC,
    AES_GMAC,
    ENCRYPTION,
    HMAC_SHA256,
    PREAUTH_INTEGRITY,
    SHA_512,
    SIGNING,
    NegotiateContext,
    chosen_context,
    preauth_context,
    read_hashes,
    read_ids,
)
from strongroom.wire.smb.statuses import (
    STATUS_NO_PREAUTH_HASH_OVERLAP,
    STATUS_NOT_SUPPORTED,
    STATUS_REQUEST_OUT_OF_SEQUENCE,
)

# In order of preference. GCM is several times faster than CCM.
ENCRYPTING_DIALECTS: Final = (DIALECT_311, DIALECT_302, DIALECT_300)
DIALECTS: Final = (*ENCRYPTING_DIALECTS, DIALECT_210)
CIPHERS: Final = (AES_128_GCM, AES_256_GCM, AES_128_CCM, AES_256_CCM)
SIGNATURES: Final = (AES_GMAC, AES_CMAC, HMAC_SHA256)
NO_CIPHER: Final = 0
_SINGLE_CONTEXTS: Final = (PREAUTH_INTEGRITY, ENCRYPTION, SIGNING)


def negotiated(
    request: NegotiateRequest, server_guid: bytes, *, requires_encryption: bool = True
) -> Negotiated:
    """Return the outcome of a NEGOTIATE.

    Arguments:
        requires_encryption: whether only dialects that can encrypt are served.

    Raises: SmbError NOT_SUPPORTED without a common dialect; INVALID_PARAMETER for contexts that are
        missing or given twice; NO_PREAUTH_HASH_OVERLAP. MalformedMessage for a truncated context.
    """
    served = ENCRYPTING_DIALECTS if requires_encryption else DIALECTS
    dialect = next((one for one in served if one in request.dialects), None)
    if dialect is None:
        raise SmbError(STATUS_NOT_SUPPORTED)
    capabilities = CAN_LEASE | CAN_USE_LARGE_MTU
    if dialect == DIALECT_311:
        contexts = _by_kind(request.contexts or ())
        if SHA_512 not in read_hashes(contexts[PREAUTH_INTEGRITY]):
            raise SmbError(STATUS_NO_PREAUTH_HASH_OVERLAP)
        cipher = _first_common(CIPHERS, contexts.get(ENCRYPTION), NO_CIPHER)
        signing = _first_common(SIGNATURES, contexts.get(SIGNING), AES_CMAC)
    elif dialect == DIALECT_210:
        cipher, signing = NO_CIPHER, HMAC_SHA256
    else:
        can_encrypt = bool(request.capabilities & CAN_ENCRYPT)
        capabilities |= CAN_ENCRYPT if can_encrypt else 0
        cipher, signing = (AES_128_CCM if can_encrypt else NO_CIPHER), AES_CMAC
    return Negotiated(
        dialect=dialect,
        client_guid=request.client_guid,
        client_capabilities=request.capabilities,
        client_security_mode=request.security_mode,
        dialects=request.dialects,
        server_guid=server_guid,
        capabilities=capabilities,
        security_mode=SIGNING_ENABLED | SIGNING_REQUIRED,
        cipher=cipher,
        signing=signing,
    )


def binding_refusal(session_signing: int, signing: int) -> int:
    """Return the status of a SESSION_SETUP that binds a session to a second connection. It is
    always refused.

    Multichannel is not offered. A difference in AES-GMAC is answered first, as Windows does.
    `session_signing` is the algorithm of the session's connection, `signing` that of the second
    one.
    """
    if session_signing == signing or AES_GMAC not in (session_signing, signing):
        return STATUS_REQUEST_NOT_ACCEPTED
    is_stronger = session_signing == AES_GMAC
    return STATUS_REQUEST_OUT_OF_SEQUENCE if is_stronger else STATUS_NOT_SUPPORTED


def answer_contexts(
    request: NegotiateRequest, chosen: Negotiated, salt: bytes
) -> tuple[NegotiateContext, ...]:
    """One for each kind that the client sent and the server knows. `salt` is 32 random bytes."""
    if chosen.dialect != DIALECT_311:
        return ()
    kinds = {one.kind for one in request.contexts or ()}
    contexts = [preauth_context(salt)]
    if ENCRYPTION in kinds:
        contexts.append(chosen_context(ENCRYPTION, chosen.cipher))
    if SIGNING in kinds:
        contexts.append(chosen_context(SIGNING, chosen.signing))
    return tuple(contexts)


def _by_kind(contexts: tuple[NegotiateContext, ...]) -> Mapping[int, bytes]:
    kinds = [one.kind for one in contexts]
    if PREAUTH_INTEGRITY not in kinds or any(kinds.count(kind) > 1 for kind in _SINGLE_CONTEXTS):
        raise SmbError(STATUS_INVALID_PARAMETER)
    return {one.kind: one.data for one in contexts}


def _first_common(preferred: tuple[int, ...], data: bytes | None, default: int) -> int:
    if data is None:
        return default
    offered = read_ids(data)
    return next((one for one in preferred if one in offered), default)
