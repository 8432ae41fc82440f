"""The public keys of a token issuer, and the check of a token's signature with one of them.

The JWT library is loaded with the first set. servers/identities/token_keys.py gets the sets.
Source: RFC 7515 (JWS), RFC 7517 (JWK), RFC 7518 (algorithms). RFC 8725 (best current practices): an
algorithm is allowed by its name and by the type of the key. The token alone never chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

DOCUMENT_BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = 100
RSA_BITS_MIN: Final = 2048
RSA_BITS_MAX: Final = 8192
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384"}
ALGORITHMS: Final = frozenset((*_RSA, *_CURVES.values()))


class KeySetError(ValueError):
    """The text says why, without the keys."""


class VerificationKey(msgspec.Struct, frozen=True):
    algorithms: frozenset[str]
    key: Any


class _Jwk(msgspec.Struct, frozen=True):
    kty: str
    kid: str = ""
    use: str | None = None
    alg: str | None = None
    crv: str | None = None
    n: str | None = None
    e: str | None = None
    x: str | None = None
    y: str | None = None
    d: str | None = None
    k: str | None = None


class _Document(msgspec.Struct, frozen=True):
    keys: tuple[_Jwk, ...]


class KeySet:
    """The verification keys of an issuer, by `kid`; the id "" belongs to a key without one."""

    def __init__(self, keys: Mapping[str, VerificationKey]) -> None:
        self._keys = dict(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, kid: str | None) -> VerificationKey | None:
        """The key of a token's `kid`; for a token without one, the only key of the set."""
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None


def parse_key_set(text: bytes) -> KeySet:
    """The signature keys of a JWK Set, at least one.

    Keys for encryption, of other types and for other algorithms are ignored. A private, secret,
    weak or malformed key is refused, and so is an id that occurs twice.
    """
    if len(text) > DOCUMENT_BYTES_MAX:
        raise KeySetError(f"the key set is longer than {DOCUMENT_BYTES_MAX} bytes")
    try:
        rows = msgspec.json.decode(text, type=_Document).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise KeySetError("the key set is no JSON Web Key Set ({'keys': [...]})") from None
    if len(rows) > KEYS_MAX:
        raise KeySetError(f"the key set has more than {KEYS_MAX} keys")
    keys: dict[str, VerificationKey] = {}
    for row in rows:
        if row.d is not None or row.k is not None:
            raise KeySetError(f"key {row.kid[:64]!r} of the key set is a secret: publish no such")
        key = _verification_key(row)
        if key is None:
            continue
        if row.kid in keys:
            raise KeySetError(f"the key set has two keys with the id {row.kid[:64]!r}")
        keys[row.kid] = key
    if not keys:
        raise KeySetError(f"the key set has no key for any of {', '.join(sorted(ALGORITHMS))}")
    return KeySet(keys)


def _verification_key(row: _Jwk) -> VerificationKey | None:
    """None if the key is not for signatures, or of another type."""
    if row.use not in (None, "sig"):
        return None
    if row.kty == "RSA":
        usable = frozenset(_RSA)
    elif row.kty == "EC" and row.crv in _CURVES:
        usable = frozenset((_CURVES[row.crv],))
    else:
        return None
    if row.alg is not None:
        usable &= {row.alg}
    return VerificationKey(usable, _public_key(row)) if usable else None


def _public_key(row: _Jwk) -> Any:
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm
    from jwt.exceptions import PyJWTError

    parts = {name: getattr(row, name) for name in ("kty", "crv", "n", "e", "x", "y")}
    document = {name: value for name, value in parts.items() if value is not None}
    library: Any = RSAAlgorithm if row.kty == "RSA" else ECAlgorithm
    try:
        key = library.from_jwk(document)
    except (PyJWTError, ValueError, TypeError):
        raise KeySetError(f"key {row.kid[:64]!r} of the key set is malformed") from None
    if row.kty == "RSA" and not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
        raise KeySetError(
            f"key {row.kid[:64]!r} of the key set has {key.key_size} bits; RSA keys have "
            f"{RSA_BITS_MIN} to {RSA_BITS_MAX}"
        )
    return key


def is_signed(token: str, algorithm: str, key: VerificationKey) -> bool:
    """Whether `key` signed a compact JWS whose header names `algorithm`."""
    if algorithm not in ALGORITHMS or algorithm not in key.algorithms:
        return False
    from jwt.api_jws import PyJWS
    from jwt.exceptions import PyJWTError

    try:
        PyJWS(algorithms=[algorithm]).decode_complete(token, key.key, algorithms=[algorithm])
    except (PyJWTError, ValueError, TypeError, RecursionError):
        return False
    return True
