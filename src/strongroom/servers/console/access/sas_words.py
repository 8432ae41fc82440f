"""What the fields of a shared access signature mean, in words.

Lives here: tables of texts, and sentences made of them. Must not live here: the form of a token
(auth/sas.py), whether it is valid (sas_check.py). Source: "Create a service SAS", "Create an
account SAS", "Create a user delegation SAS".
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.claims import SasKind
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import DEPTH, Sas

MEANINGS: Final = {
    "sv": "The service version whose rules it follows.",
    "ss": "The services that it opens.",
    "srt": "The types of resources that it opens.",
    "sr": "The kind of resource that it opens.",
    "sp": "What it permits, a letter each.",
    "st": "It is valid from this time on.",
    "se": "It ends at this time.",
    "si": "The stored access policy that holds the rest. Without the policy, it is refused.",
    "sip": "Only these addresses may use it.",
    "spr": "The protocols over which it may be used.",
    "sig": "The signature over the other fields and the resource. It is a secret, and masked here.",
    "sdd": "How many levels below the container the directory lies.",
    "ses": "The encryption scope that writes use.",
    "rscc": "The answer's Cache-Control.",
    "rscd": "The answer's Content-Disposition.",
    "rsce": "The answer's Content-Encoding.",
    "rscl": "The answer's Content-Language.",
    "rsct": "The answer's Content-Type.",
    "tn": "The table that it opens.",
    "spk": "The first PartitionKey that it opens.",
    "srk": "The first RowKey that it opens.",
    "epk": "The last PartitionKey that it opens.",
    "erk": "The last RowKey that it opens.",
    "skoid": "The user whose delegation key signed it. This user's roles limit it.",
    "sktid": "The tenant of that user.",
    "skt": "The delegation key is valid from this time on.",
    "ske": "The delegation key ends at this time, and the signature with it.",
    "sks": "The service that issued the delegation key.",
    "skv": "The version of the request for the delegation key.",
    "skdutid": "The tenant of the user for whom it is.",
    "sduoid": "The only user who may use it, with a token of this user beside it.",
    "saoid": "An authorized user, for whom the signer vouches.",
    "suoid": "A user whose POSIX rights are checked too; it needs a hierarchical namespace.",
    "scid": "An id for correlating log entries.",
    "srh": "Headers that are signed: a request must have the same.",
    "srq": "Parameters that are signed: a request must have the same.",
}
"""Of each parameter of a token; a test compares the names with `auth.sas`."""

_SERVICES: Final = {"b": "blobs", "q": "queues", "t": "tables", "f": "files"}
_TYPES: Final = {
    "s": "the service itself (its lists and settings)",
    "c": "containers, queues, tables and shares",
    "o": "what is in them: blobs, messages, entities and files",
}
_RESOURCES: Final = {
    "b": "one blob",
    "bs": "one snapshot of a blob",
    "bv": "one version of a blob",
    "c": "a container and all blobs in it",
    "d": "a directory and all blobs below it",
    "f": "one file",
    "s": "a share and all files in it",
}
_PROTOCOLS: Final = {"": "HTTP and HTTPS", "https": "HTTPS only"}
_OF_BLOBS: Final = {
    "r": "read contents, properties, metadata and block lists",
    "a": "append blocks",
    "c": "create blobs, snapshots and copies, where none is yet",
    "w": "write contents, properties and metadata, and lease",
    "d": "delete",
    "x": "delete versions",
    "y": "delete for good what is kept after a deletion",
    "l": "list",
    "t": "read and write tags",
    "f": "find blobs by their tags",
    "m": "move",
    "e": "read properties of directories",
    "o": "set the owner",
    "p": "set POSIX permissions",
    "i": "set immutability policies and legal holds",
}
_OF_FILES: Final = {
    "r": "read contents, properties and metadata",
    "c": "create files",
    "w": "write contents, properties and metadata, and lease",
    "d": "delete",
    "l": "list",
}
_OF_QUEUES: Final = {
    "r": "peek at messages, and read metadata",
    "a": "put messages",
    "u": "update messages",
    "p": "get and delete messages",
}
_OF_TABLES: Final = {
    "r": "read entities",
    "a": "add entities",
    "u": "change entities",
    "d": "delete entities",
}
_OF_ACCOUNT: Final = {
    **_OF_BLOBS,
    "r": "read contents, properties and metadata; peek at messages; read entities",
    "w": "write contents, properties, metadata and settings; lease",
    "d": "delete",
    "l": "list",
    "a": "add: messages, entities, appended blocks",
    "c": "create containers, queues, tables, shares, blobs and files",
    "u": "update messages and entities",
    "p": "get and delete messages",
}
_RIGHTS: Final = {
    Service.BLOB: _OF_BLOBS,
    Service.FILE: _OF_FILES,
    Service.QUEUE: _OF_QUEUES,
    Service.TABLE: _OF_TABLES,
}


def right(letter: str, kind: SasKind, service: Service) -> str:
    """Return what a letter of `sp` permits; "" if it has no meaning there."""
    known = _OF_ACCOUNT if kind is SasKind.ACCOUNT else _RIGHTS[service]
    return known.get(letter, "")


def meaning(name: str, value: str) -> str:
    """Return what a parameter means, with its value in words where it is a code."""
    text = MEANINGS[name]
    if name == "ss":
        return f"{text} Here: {_listed(value, _SERVICES)}."
    if name == "srt":
        return f"{text} Here: {_listed(value, _TYPES)}."
    if name == "sr":
        return f"{text} Here: {_RESOURCES.get(value, 'none that is known')}."
    if name == "spr":
        return f"{text} Here: {protocols(value)}."
    return text


def protocols(spr: str) -> str:
    return _PROTOCOLS.get(spr, "HTTP and HTTPS")


def addresses(sip: str) -> str:
    """Return who may use a token with this `sip`."""
    if not sip:
        return "any address"
    first, hyphen, last = sip.partition("-")
    return f"{first} to {last}" if hyphen else first


def reaches(sas: Sas, kind: SasKind, target: Target | None) -> str:
    """Return on what a token permits something, as a sentence.

    Arguments:
        target: what its address names; None without one.
    """
    if kind is SasKind.ACCOUNT:
        whose = f"In the account {target.account}" if target is not None else "In one account"
        return f"{whose}: {_listed(sas.ss, _SERVICES)}; there {_listed(sas.srt, _TYPES)}."
    if target is None:
        return f"{_unnamed(sas).capitalize()}, which its URL names."
    if target.service is Service.QUEUE:
        return f"The queue {target.container or '?'}."
    if target.service is Service.TABLE:
        return f"The table {sas.tn or target.container or '?'}{_range(sas)}."
    return _of_paths(sas, target)


def _of_paths(sas: Sas, target: Target) -> str:
    container, path = target.container or "?", target.blob or "?"
    if sas.sr == "c":
        return f"The container {container}, and all blobs in it."
    if sas.sr == "s":
        return f"The share {container}, and all files in it."
    if sas.sr == "d":
        depth = int(sas.sdd) if DEPTH.fullmatch(sas.sdd) else 0
        directory = "/".join(path.split("/")[:depth])
        return f"The directory {directory} of the container {container}, and all below it."
    kinds = {"bs": "One snapshot of the blob", "bv": "One version of the blob", "f": "The file"}
    return f"{kinds.get(sas.sr, 'The blob')} {path} in {container}."


def _unnamed(sas: Sas) -> str:
    return _RESOURCES.get(sas.sr) or ("a table" if sas.tn else "a queue")


def _range(sas: Sas) -> str:
    first = " and ".join(one for one in (sas.spk, sas.srk) if one)
    last = " and ".join(one for one in (sas.epk, sas.erk) if one)
    parts = [f"from {first}" if first else "", f"to {last}" if last else ""]
    limits = " ".join(part for part in parts if part)
    return f", entities {limits}" if limits else ""


def _listed(letters: str, words: dict[str, str]) -> str:
    meanings = [words.get(letter, f"'{letter}', which is unknown") for letter in letters]
    return (
        "; ".join(meanings)
        if any(";" in one for one in meanings)
        else ", ".join(meanings) or "nothing"
    )
