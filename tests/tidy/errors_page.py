"""`docs/errors.md`: every error of the services by its text, and what to do about the common ones.

Lives here: the generation of the page from the table of errors, and the advice. Must not live here:
codes and texts (strongroom/errors).

    python -m tests.tidy.errors_page       writes the page anew
"""

from __future__ import annotations

from collections import defaultdict

from strongroom import coordination
from strongroom.coordination import CoordinationError
from strongroom.errors import (  # noqa: F401 - importing them fills the table
    blob,
    copies,
    core,
    file,
    leases,
    queue,
    table,
)
from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "errors.md"

INTRODUCTION = """\
# Errors by their text

Search this page for a part of the text, or for the code. Clients show the code as
`x-ms-error-code`, `error_code` or `ErrorCode`. The server's texts often say more: which header,
which rule, what to do. This page is made by `python -m tests.tidy.errors_page` from the tables of
errors.

"""
ADVICE_TITLE = "## What to do about the common ones\n\n| code | what to do |\n| --- | --- |\n"
ADVICE = {
    "AuthenticationFailed": "Compare the account's name and key with those of the server "
    "(`strongroom account list --show`), and the clocks: SharedKey allows 15 minutes. The answer's "
    "detail says which of them it is. A proxy must leave path and `Host` as they are.",
    "AuthorizationFailure": "The signature is right, but does not permit this. For a SAS look at "
    "`sp`, `srt`, `sip`; for a user at `strongroom role list`.",
    "AuthorizationPermissionMismatch": "The SAS or the user's roles lack a permission. The detail "
    "names it; see [roles](operations/roles.md).",
    "NoAuthenticationInformation": "The request is anonymous, and the container is not public. "
    "Send a key, a SAS or a token.",
    "InvalidAuthenticationInfo": "A bearer token was refused: issuer, audience, tenant or time. "
    "See [identity](identity.md#an-issuer). Tokens need HTTPS, but for `--oauth basic`.",
    "InvalidUri": "Path style is `http://HOST:PORT/ACCOUNT/container/blob`: the account's name "
    "comes first. See [clients](clients.md#the-connection).",
    "ContainerAlreadyExists": "The container exists already. Use it, or choose another name.",
    "ContainerNotFound": "Create the container first. Names are compared with their case.",
    "BlobNotFound": "No blob has this name. Check the account and the container in the URL too.",
    "ResourceNotFound": "The account, container, share or file of the URL does not exist here.",
    "ConditionNotMet": "Somebody has changed the resource since the ETag was read, or it exists "
    "already. Read it again, then decide.",
    "UpdateConditionNotSatisfied": "The entity has changed since its ETag was read. Read it again.",
    "LeaseIdMissing": "The resource is leased. Send its `x-ms-lease-id`, or wait until the lease "
    "ends.",
    "LeaseAlreadyPresent": "Another client has the lease. Wait: `x-strongroom-wait` does so in one "
    "request.",
    "LeaseLost": "The lease has expired, and somebody may have written since. Acquire it again.",
    "LeaseIdMismatchWithBlobOperation": "The lease id is not that of the present lease.",
    "PopReceiptMismatch": "The message became visible again, or was updated. Use the newest pop "
    "receipt.",
    "MessageNotFound": "The message was deleted, has expired, or is another client's by now.",
    "BlobImmutableDueToPolicy": "A policy protects the blob until its time is over. See "
    "`strongroom container list`.",
    "BlobImmutableDueToLegalHold": "A legal hold protects the blob until it is cleared.",
    "NotImplemented": "The detail names the operation or header. [compatibility](compatibility.md) "
    "lists what is not served.",
    "InsufficientStorage": "The disk is full. Delete something, or make the disk larger. See "
    "[operating](operating.md#when-the-disk-fails-or-is-full).",
    "InternalError": "Look at the server's log: it names damaged data. Run `strongroom doctor`. "
    "See [operating](operating.md#damage-on-the-disk).",
    "ServerBusy": "Repeat the request after a pause, as SDKs do.",
    "SharingViolation": "An SMB client has the file open, and its share mode does not allow this. "
    "`strongroom files handles SHARE` lists who. See [files](files.md).",
    "ClientCacheFlushDelay": "An SMB client has changes of this file in its cache. Repeat the "
    "request.",
    "CannotVerifyCopySource": "401: the source is private, and the request has no SAS or token for "
    "it. 403: the SAS or token does not permit the read, or the source's host may not be asked. "
    "404: there is no such source. 304 or 412: a condition on the source failed. See [sources of "
    "copies](operating.md#sources-of-copies).",
    "InvalidRange": "The range begins behind the end of the blob or file.",
    "RequestBodyTooLarge": "The answer has the limit. Send the body in blocks, or smaller blocks.",
}
TABLE_TITLE = "\n## All of the services\n\n"
TABLE_HEAD = """\
Status is that of HTTP. NTSTATUS is what SMB clients get in the same situation.

| code | status | text | NTSTATUS |
| --- | --- | --- | --- |
"""
TOOLKIT_TITLE = """
## Of the coordination toolkit

Python raises these errors; commands such as `strongroom lock` print their texts. All are
subclasses of `CoordinationError`.

| class | meaning |
| --- | --- |
"""
END = """
## Of the command

Each message of `strongroom` is one line on standard error that says what is wrong and what to do.
[operating.md](operating.md#exit-codes) lists the exit codes.
"""


def page() -> str:
    """Return the page."""
    return "".join((INTRODUCTION, _advice(), TABLE_TITLE, TABLE_HEAD, _rows(), _toolkit(), END))


def _advice() -> str:
    return ADVICE_TITLE + "".join(f"| `{code}` | {ADVICE[code]} |\n" for code in sorted(ADVICE))


def _rows() -> str:
    """Return the rows of all services; rows that differ in their NTSTATUS only are one."""
    found: defaultdict[tuple[str, int, str], list[int]] = defaultdict(list)
    for row in core.table():
        found[row.code, row.status, " ".join(row.message.split())] += [row.ntstatus or 0]
    return "".join(
        f"| `{code}` | {status} | {text.replace('|', '/')} | {_statuses(given)} |\n"
        for (code, status, text), given in sorted(found.items())
    )


def _statuses(given: list[int]) -> str:
    return ", ".join(f"0x{one:08X}" for one in sorted(set(given)) if one)


def _toolkit() -> str:
    classes = [getattr(coordination, name) for name in coordination.__all__]
    rows = [
        (one.__name__, " ".join((one.__doc__ or "").partition("\n\n")[0].split()))
        for one in classes
        if isinstance(one, type) and issubclass(one, CoordinationError)
    ]
    return TOOLKIT_TITLE + "".join(f"| `{name}` | {text} |\n" for name, text in sorted(rows))


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
