"""The string that a SAS signs, in every generation of the format, and the signature's check.

Source: "Create a service SAS", section "Construct the signature string"; "Create an account SAS";
"Create a user delegation SAS". All values are signed as decoded text.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.accounts import Account, Signer, signing_key
from strongroom.auth.claims import SasClaim, SasKind
from strongroom.auth.refusals import authentication_failed
from strongroom.auth.request import HeaderFields, Service, Target
from strongroom.auth.sas import Pairs, Sas
from strongroom.errors.core import StorageError

Generations = tuple[tuple[str, tuple[str, ...]], ...]


def _generation(since: str, fields: str) -> tuple[str, tuple[str, ...]]:
    return since, tuple(fields.split())


# Fields have their names in the URL. Names in capitals do not come from the token: CR is the
# canonicalised resource, TIME the snapshot or version. The newest row comes first. The first row
# that is not newer than sv applies.
_OVERRIDES: Final = "rscc rscd rsce rscl rsct"
_RANGE: Final = "spk srk epk erk"
_UDK: Final = "skoid sktid skt ske sks skv"
SERVICE_SAS: Final[dict[Service, Generations]] = {
    Service.BLOB: (
        _generation("2020-12-06", f"sp st se CR si sip spr sv sr TIME ses {_OVERRIDES}"),
        _generation("2018-11-09", f"sp st se CR si sip spr sv sr TIME {_OVERRIDES}"),
        _generation("2015-04-05", f"sp st se CR si sip spr sv {_OVERRIDES}"),
        _generation("2013-08-15", f"sp st se CR si sv {_OVERRIDES}"),
        _generation("2012-02-12", "sp st se CR si sv"),
        _generation("", "sp st se CR si"),
    ),
    Service.FILE: (
        _generation("2015-04-05", f"sp st se CR si sip spr sv {_OVERRIDES}"),
        _generation("2015-02-21", f"sp st se CR si sv {_OVERRIDES}"),
    ),
    Service.QUEUE: (
        _generation("2015-04-05", "sp st se CR si sip spr sv"),
        _generation("2012-02-12", "sp st se CR si sv"),
    ),
    Service.TABLE: (
        _generation("2015-04-05", f"sp st se CR si sip spr sv {_RANGE}"),
        _generation("2012-02-12", f"sp st se CR si sv {_RANGE}"),
    ),
}
USER_DELEGATION_SAS: Final[dict[Service, Generations]] = {
    Service.BLOB: (
        _generation(
            "2026-04-06",
            f"sp st se CR {_UDK} saoid suoid scid skdutid sduoid sip spr sv sr TIME ses SRH SRQ "
            f"{_OVERRIDES}",
        ),
        _generation(
            "2025-07-05",
            f"sp st se CR {_UDK} saoid suoid scid skdutid sduoid sip spr sv sr TIME ses "
            f"{_OVERRIDES}",
        ),
        _generation(
            "2020-12-06",
            f"sp st se CR {_UDK} saoid suoid scid sip spr sv sr TIME ses {_OVERRIDES}",
        ),
        _generation(
            "2020-02-10", f"sp st se CR {_UDK} saoid suoid scid sip spr sv sr TIME {_OVERRIDES}"
        ),
        _generation("2018-11-09", f"sp st se CR {_UDK} sip spr sv sr TIME {_OVERRIDES}"),
    ),
    Service.QUEUE: (_generation("2025-07-05", f"sp st se CR {_UDK} skdutid sduoid sip spr sv"),),
    Service.FILE: (
        _generation("2025-07-05", f"sp st se CR {_UDK} skdutid sduoid sip spr sv {_OVERRIDES}"),
    ),
}
# Each field of an account SAS ends with a line end, even the last one.
ACCOUNT_SAS: Final[Generations] = (
    _generation("2020-12-06", "ACCOUNT sp ss srt st se sip spr sv ses"),
    _generation("2015-04-05", "ACCOUNT sp ss srt st se sip spr sv"),
)
_SERVICE_PREFIX_SINCE: Final = "2015-02-21"


def kind_of(sas: Sas) -> SasKind:
    if sas.ss or sas.srt:
        return SasKind.ACCOUNT
    return SasKind.USER_DELEGATION if sas.skoid else SasKind.SERVICE


def string_to_sign(
    sas: Sas, target: Target, headers: HeaderFields | None = None, pairs: Pairs = ()
) -> str:
    """The text whose HMAC is `sig`, by the rules of `sv`.

    Arguments:
        target: the resource that the request addresses.
        headers, pairs: the request's headers and decoded query parameters, of which a user
            delegation SAS may name some (`srh`, `srq`).
    """
    kind = kind_of(sas)
    if kind is SasKind.ACCOUNT:
        generations = ACCOUNT_SAS
    else:
        table = SERVICE_SAS if kind is SasKind.SERVICE else USER_DELEGATION_SAS
        generations = table.get(target.service, ())
    fields = next((fields for since, fields in generations if sas.sv >= since), None)
    if fields is None:
        raise authentication_failed(
            f"There is no {kind.value} for the {target.service.value} service in sv='{sas.sv}'."
        )
    values = [_field(name, sas, target, headers, pairs) for name in fields]
    return "\n".join(values) + ("\n" if kind is SasKind.ACCOUNT else "")


def _field(name: str, sas: Sas, target: Target, headers: HeaderFields | None, pairs: Pairs) -> str:
    if name.islower():
        value: str = getattr(sas, name)
        return value
    if name == "CR":
        return canonical_resource(sas, target)
    if name == "TIME":
        return _time(sas, target)
    if name == "ACCOUNT":
        return target.account
    if name == "SRH":
        return "".join(f"{key}:{_header(key, headers)}\n" for key in _names(sas.srh))
    return "".join(f"\n{key}:{_parameter(key, pairs)}" for key in _names(sas.srq))


def _names(text: str) -> list[str]:
    return text.split(",") if text else []


def _header(name: str, headers: HeaderFields | None) -> str:
    return (headers.get(name.lower()) if headers else None) or ""


def _parameter(name: str, pairs: Pairs) -> str:
    """The value of a parameter that `srq` names; "" if it was not sent.

    Operations ignore the case of parameter names, and some join repeated parameters. So all
    parameters of the name must be found, and repeated ones are refused.
    """
    lowered = name.lower()
    values = [value for key, value in pairs if key.lower() == lowered]
    if len(values) > 1:
        raise authentication_failed(
            f"The parameter '{name}' is signed (srq), and was sent more than once."
        )
    return values[0] if values else ""


def canonical_resource(sas: Sas, target: Target) -> str:
    """The resource that a token for `target` names: `/blob/ACCOUNT/container/name`."""
    prefix = f"/{target.service.value}" if sas.sv >= _SERVICE_PREFIX_SINCE else ""
    container = target.container or ""
    if target.service is Service.TABLE:
        container = container.lower()
    resource = f"{prefix}/{target.account}/{container}"
    if target.service in (Service.QUEUE, Service.TABLE) or sas.sr in ("c", "s"):
        return resource
    if target.blob is None:
        return resource
    return f"{resource}/{directory_of(sas, target.blob) if sas.sr == 'd' else target.blob}"


def directory_of(sas: Sas, blob: str) -> str:
    """The directory, `sdd` levels deep, that contains `blob` or is `blob`."""
    depth = int(sas.sdd)
    return "/".join(blob.split("/")[:depth])


def _time(sas: Sas, target: Target) -> str:
    if sas.sr == "bs":
        return target.snapshot or ""
    return (target.version_id or "") if sas.sr == "bv" else ""


def verify_signature(
    sas: Sas,
    account: Account,
    target: Target,
    delegation_keys: tuple[bytes, ...] = (),
    headers: HeaderFields | None = None,
    pairs: Pairs = (),
) -> SasClaim:
    """Verify that one of `account`'s keys signed the token for `target`, and return the claim.

    Arguments:
        delegation_keys: the possible values of the token's user delegation key, one for each
            account key that may have made it. An empty tuple means that there is no such key.
        headers, pairs: as for string_to_sign.
    """
    kind = kind_of(sas)
    _refuse_other_resource(sas, kind, target)
    signers = account.signers
    if kind is SasKind.USER_DELEGATION:
        if not delegation_keys:
            raise authentication_failed(
                "The user delegation key that the shared access signature names is not known to "
                "this server."
            )
        signers = tuple(Signer(key) for key in delegation_keys)
    text = string_to_sign(sas, target, headers, pairs)
    # A `+` of the base64 text that a client left unencoded may have been read as a space.
    signature = sas.sig.replace(" ", "+").encode("utf-8", "surrogatepass")
    key = signing_key(signers, text.encode("utf-8", "surrogatepass"), signature)
    if not key:
        raise authentication_failed(f"Signature did not match. String to sign used was {text}")
    return SasClaim(account.name, kind, sas, target, key=key)


def _refuse_other_resource(sas: Sas, kind: SasKind, target: Target) -> None:
    """Refuse uses that the signature alone allows, such as a blob's token for its snapshot."""
    if kind is SasKind.ACCOUNT:
        return
    if sas.tn and target.container is not None and sas.tn.lower() != target.container.lower():
        raise _reach(f"tn='{sas.tn}' names another table than the request")
    if sas.sr == "b" and (target.snapshot is not None or target.version_id is not None):
        raise _reach("sr=b reaches the base blob, not its snapshots or versions")
    if sas.sr == "bs" and (target.snapshot is None or target.version_id is not None):
        raise _reach("sr=bs reaches one snapshot, which the request does not name")
    if sas.sr == "bv" and (target.version_id is None or target.snapshot is not None):
        raise _reach("sr=bv reaches one version, which the request does not name")


def _reach(detail: str) -> StorageError:
    return authentication_failed(f"The shared access signature does not apply: {detail}.")
