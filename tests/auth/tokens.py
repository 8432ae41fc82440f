"""Bearer tokens for tests: keys of every kind, key sets, and tokens that say what a test wants."""

from __future__ import annotations

import base64
import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from strongroom.auth.bearer import Issuer

ISSUER = "https://sts.windows.net/00000000-0000-0000-0000-0000000000aa/"
TENANT = "00000000-0000-0000-0000-0000000000aa"
USER = "00000000-0000-0000-0000-000000000001"
OTHER = "00000000-0000-0000-0000-000000000002"
GROUP = "00000000-0000-0000-0000-0000000000f0"
AUDIENCE = "https://storage.azure.com"
SETTINGS = Issuer(name=ISSUER, tenant=TENANT)
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """A key for an algorithm; another number, another key."""
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == "ES384":
        return ec.generate_private_key(ec.SECP384R1())
    return rsa.generate_private_key(65537, 2048)


def key_for(algorithm: str) -> Any:
    """The key that the issuer's key set has for an algorithm."""
    return private_key(algorithm if algorithm.startswith("ES") else "RSA")


def jwk(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    """Return the public half of a key, in the form of a key set."""
    library: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**library.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} | more


def kid_for(algorithm: str) -> str:
    """The id of that key."""
    return algorithm if algorithm.startswith("ES") else "RSA"


def key_set(*rows: dict[str, Any]) -> bytes:
    """A key set; without rows, the issuer's."""
    own = [jwk(key_for(one), kid_for(one)) for one in ("RS256", "ES256", "ES384")]
    return json.dumps({"keys": list(rows) or own}).encode()


def public_pem(key: Any) -> bytes:
    """The public half of a key as PEM: what key confusion takes for a shared secret."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, form)
    return found


def claims(**more: Any) -> dict[str, Any]:
    """Claims that are accepted now; None leaves one out."""
    now = int(time.time())
    found = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "tid": TENANT,
        "oid": USER,
        "nbf": now - 5,
        "exp": now + 3600,
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def token(algorithm: str = "RS256", **more: Any) -> str:
    """A token of the issuer with `claims(**more)`."""
    kid = kid_for(algorithm)
    return jwt.encode(claims(**more), key_for(algorithm), algorithm, headers={"kid": kid})


def part(value: Any) -> str:
    """A value as one part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def unsigned(header: Any, payload: Any = None, signature: str = "") -> str:
    """A token put together by hand."""
    return f"{part(header)}.{part(claims() if payload is None else payload)}.{signature}"
