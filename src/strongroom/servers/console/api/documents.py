"""The documents of the read API, version 1: what each answer has, and whose each field is.

Lives here: the structs. Must not live here: how figures are gathered (figures.py), who
may ask (table.py). Names carry their unit last. Times are RFC 3339 texts in UTC, shares of time are
seconds. `null` says that there is nothing to tell, or that this viewer may not see it: `who` tells
which. `python -m tests.tidy.console_types` makes `console/src/api/documents.ts` of this module.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from strongroom.servers.console.marks import ANYBODY, OWN, READABLE, SERVER

ServiceName = Literal["blob", "queue", "table", "file"]
Scope = Literal["account", "server"]


class ServicePort(msgspec.Struct, frozen=True, kw_only=True):
    """Where clients of one service connect: its own port, not the console's.

    Attributes:
        url: the service's root as SDKs take it, without an account: `http://127.0.0.1:10000`. On a
            server with one port for all services it ends with the service: `.../blob`.
    """

    name: Annotated[ServiceName, ANYBODY]
    url: Annotated[str, ANYBODY]
    port: Annotated[int, ANYBODY]


class DevelopmentAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The account with a key that everybody knows, where it is offered for one click."""

    name: Annotated[str, ANYBODY]
    key: Annotated[str, ANYBODY]


class SignInIssuer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a person signs in for a bearer token, by the code flow with PKCE.

    Attributes:
        name: the issuer's host, for the link's text.
        authorization_endpoint: where the page navigates to.
        scope: what the page asks for.
    """

    name: Annotated[str, ANYBODY]
    authorization_endpoint: Annotated[str, ANYBODY]
    client_id: Annotated[str, ANYBODY]
    scope: Annotated[str, ANYBODY]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """`GET session`: what the page needs before somebody signs in.

    Attributes:
        development_account: None where it is not offered: its key was changed, or a listener is
            beyond loopback.
        issuer: None where nobody can sign in for a token.
        console_url: the one origin behind a proxy; None = the request's own.
        idle_minutes: without a key or a click for so long, the page signs out.
    """

    version: Annotated[str, ANYBODY]
    development_account: Annotated[DevelopmentAccount | None, ANYBODY]
    issuer: Annotated[SignInIssuer | None, ANYBODY]
    services: Annotated[tuple[ServicePort, ...], ANYBODY]
    console_url: Annotated[str | None, ANYBODY]
    idle_minutes: Annotated[int, ANYBODY]
    has_test_clock: Annotated[bool, ANYBODY]


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """`GET who`: what the server makes of the credential that signed this request.

    Attributes:
        account: the account that was named, by its key or by `?account=` with a token.
        name: the account of a key, or the principal's id of a token.
        may_see: "overview" the figures of `scope`, "server" those of the whole server, "requests"
            the tail of requests, "coordination" the records that the credential may read.
        scope: whose figures `overview` and `history` show; None = none.
    """

    kind: Annotated[Literal["key", "bearer"], ANYBODY]
    account: Annotated[str | None, ANYBODY]
    name: Annotated[str, ANYBODY]
    is_operator: Annotated[bool, ANYBODY]
    may_see: Annotated[tuple[str, ...], ANYBODY]
    scope: Annotated[Scope | None, ANYBODY]


class ServiceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One service: what the viewer's scope has asked of it in the last sample of `interval_s`.

    Attributes:
        latency_p50_s, latency_p99_s: from the request's head to the answer's last byte, read from
            a histogram; None without requests.
    """

    name: Annotated[ServiceName, ANYBODY]
    url: Annotated[str, ANYBODY]
    port: Annotated[int, ANYBODY]
    requests_per_s: Annotated[float | None, OWN] = None
    errors_per_s: Annotated[float | None, OWN] = None
    latency_p50_s: Annotated[float | None, OWN] = None
    latency_p99_s: Annotated[float | None, OWN] = None
    received_bytes_per_s: Annotated[float | None, OWN] = None
    sent_bytes_per_s: Annotated[float | None, OWN] = None


class DiskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The disk of the data directory, and the reserve for the time when it is full."""

    free_bytes: Annotated[int, SERVER] = 0
    is_full: Annotated[bool, SERVER] = False
    reserve_bytes: Annotated[int, SERVER] = 0
    reserve_whole_bytes: Annotated[int, SERVER] = 0
    records_bytes: Annotated[int, SERVER] = 0
    log_bytes: Annotated[int, SERVER] = 0
    segments_bytes: Annotated[int, SERVER] = 0
    live_bytes: Annotated[int, SERVER] = 0
    damaged_reads: Annotated[int, SERVER] = 0
    last_backup_time: Annotated[str | None, SERVER] = None


class JobFigures(msgspec.Struct, frozen=True, kw_only=True):
    running: Annotated[int, SERVER] = 0
    failing: Annotated[int, SERVER] = 0
    done: Annotated[int, SERVER] = 0


class LoggedError(msgspec.Struct, frozen=True, kw_only=True):
    """One of the newest lines of the server's log, from level warning on."""

    time: Annotated[str, SERVER] = ""
    level: Annotated[str, SERVER] = ""
    text: Annotated[str, SERVER] = ""


class AccountFigures(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, SERVER] = ""
    keys: Annotated[int, SERVER] = 0
    requests_per_s: Annotated[float | None, SERVER] = None
    errors_per_s: Annotated[float | None, SERVER] = None


class ServerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The whole server, for operators.

    Attributes:
        data: the data directory; None = in memory.
        commits_per_sync: how many commits one sync of the log made durable; None without one, and
            in memory.
        memory_bytes: the process's resident memory; None where the system does not tell.
        connections, waiters: open connections; records that requests wait for.
    """

    started_time: Annotated[str, SERVER] = ""
    data: Annotated[str | None, SERVER] = None
    is_ready: Annotated[bool, SERVER] = False
    commits_per_s: Annotated[float | None, SERVER] = None
    commits_per_sync: Annotated[float | None, SERVER] = None
    memory_bytes: Annotated[int | None, SERVER] = None
    connections: Annotated[int, SERVER] = 0
    connections_max: Annotated[int, SERVER] = 0
    waiters: Annotated[int, SERVER] = 0
    disk: Annotated[DiskFigures | None, SERVER] = None
    jobs: Annotated[JobFigures | None, SERVER] = None
    last_errors: Annotated[tuple[LoggedError, ...], SERVER] = ()
    accounts: Annotated[tuple[AccountFigures, ...], SERVER] = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """`GET overview`: the figures of the newest sample.

    Attributes:
        scope: whose figures these are: the account's, or the whole server's.
        interval_s: the length of the sample; 0 before the first.
        server: None for those who are no operators.
    """

    time: Annotated[str, ANYBODY]
    interval_s: Annotated[float, ANYBODY]
    scope: Annotated[Scope | None, ANYBODY]
    services: Annotated[tuple[ServiceFigures, ...], ANYBODY]
    server: Annotated[ServerFigures | None, SERVER] = None


Series = tuple[float | None, ...]


class SampledHour(msgspec.Struct, frozen=True, kw_only=True):
    """`GET history`: the samples of the last hour, the oldest first.

    All series have the same length. A sample that was not taken is null, as is each of a series
    that the viewer may not see.

    Attributes:
        end_time: the end of the last sample; sample `i` of `n` ended `(n - 1 - i) * step_s` before.
    """

    end_time: Annotated[str, ANYBODY]
    step_s: Annotated[float, ANYBODY]
    scope: Annotated[Scope | None, ANYBODY]
    requests_per_s: Annotated[Series, OWN] = ()
    errors_per_s: Annotated[Series, OWN] = ()
    latency_p50_s: Annotated[Series, OWN] = ()
    latency_p99_s: Annotated[Series, OWN] = ()
    received_bytes_per_s: Annotated[Series, OWN] = ()
    sent_bytes_per_s: Annotated[Series, OWN] = ()
    commits_per_s: Annotated[Series, SERVER] = ()
    commits_per_sync: Annotated[Series, SERVER] = ()
    disk_free_bytes: Annotated[Series, SERVER] = ()
    memory_bytes: Annotated[Series, SERVER] = ()
    connections: Annotated[Series, SERVER] = ()


class ExchangedToken(msgspec.Struct, frozen=True, kw_only=True):
    """`POST tokens`: what the issuer gave for a code. It is not kept.

    Attributes:
        id_token: the page compares its nonce; None if the issuer gave none.
    """

    access_token: Annotated[str, ANYBODY]
    expires_in_s: Annotated[int, ANYBODY]
    id_token: Annotated[str | None, ANYBODY]


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One request in short.

    Attributes:
        number: counts the requests of this process, from 1.
        who: how the caller identified itself: "key ACCOUNT", "sas ACCOUNT", a principal's id,
            "anonymous".
        account: that the request addressed; "" if it named none.
        operation: its declared name; "" if none was found.
        path: as sent, with the query, secrets masked; perhaps cut.
        code: the error's code; "" without one.
        through_console: whether it came through the console's port.
    """

    number: Annotated[int, READABLE]
    time: Annotated[str, READABLE]
    who: Annotated[str, READABLE]
    account: Annotated[str, READABLE]
    operation: Annotated[str, READABLE]
    method: Annotated[str, READABLE]
    service: Annotated[str, READABLE]
    path: Annotated[str, READABLE]
    status: Annotated[int, READABLE]
    code: Annotated[str, READABLE]
    duration_ms: Annotated[float, READABLE]
    through_console: Annotated[bool, READABLE]


class RequestsPage(msgspec.Struct, frozen=True, kw_only=True):
    """`GET requests`: the requests after `after` that the viewer may see, the oldest first.

    Attributes:
        newest: ask again with `after` of this number.
        oldest_kept: what lies before is gone.
    """

    newest: Annotated[int, READABLE]
    oldest_kept: Annotated[int, READABLE]
    requests: Annotated[tuple[RequestRow, ...], READABLE]


class HeaderText(msgspec.Struct, frozen=True, kw_only=True):
    """One header, secrets masked."""

    name: Annotated[str, READABLE]
    value: Annotated[str, READABLE]


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused.

    Attributes:
        rule: the number of the rule that refused; "" if none has one.
        link: where the documentation has the rule; None if nowhere.
        string_to_sign: what the server signed to compare; None where that was not the question.
        mistakes: which of the common mistakes this request shows, as sentences.
    """

    rule: Annotated[str, READABLE]
    text: Annotated[str, READABLE]
    link: Annotated[str | None, READABLE]
    string_to_sign: Annotated[str | None, READABLE]
    mistakes: Annotated[tuple[str, ...], READABLE]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The request as commands and code, with placeholders in place of secrets and bodies; None
    where a language has no call for it."""

    curl: Annotated[str, READABLE]
    python: Annotated[str | None, READABLE]
    javascript: Annotated[str | None, READABLE]
    dotnet: Annotated[str | None, READABLE]


class RequestInFull(msgspec.Struct, frozen=True, kw_only=True):
    """`GET requests/N`: one request in full, as long as it is kept.

    Attributes:
        is_whole: whether headers are kept; False = only `request` is left.
        is_cut: whether headers were cut to their limit.
        why: None if it was not refused.
    """

    request: Annotated[RequestRow, READABLE]
    is_whole: Annotated[bool, READABLE]
    is_cut: Annotated[bool, READABLE]
    request_headers: Annotated[tuple[HeaderText, ...], READABLE]
    answer_headers: Annotated[tuple[HeaderText, ...], READABLE]
    why: Annotated[Why | None, READABLE]
    replay: Annotated[Replay | None, READABLE]


class LeaseTime(msgspec.Struct, frozen=True, kw_only=True):
    """`GET leases`: the lease of a blob or container.

    Attributes:
        state: in Azure's words, as x-ms-lease-state.
        left_s: how long it is leased or breaking at most from now on, unless it is renewed; None =
            it is neither, or has no end.
    """

    state: Annotated[str, READABLE]
    left_s: Annotated[float | None, READABLE]


class ProblemDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and what to do.

    Attributes:
        needs: which credential it needs: "account key", "operator", "sign-in"; None = another
            credential does not help.
    """

    code: Annotated[str, ANYBODY]
    text: Annotated[str, ANYBODY]
    needs: Annotated[str | None, ANYBODY] = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Every refusal of the read API."""

    error: Annotated[ProblemDetail, ANYBODY]


DOCUMENTS: Final[tuple[type[msgspec.Struct], ...]] = (
    Session,
    Who,
    Overview,
    SampledHour,
    RequestsPage,
    RequestInFull,
    LeaseTime,
    ExchangedToken,
    Problem,
)
"""The documents of version 1; each contains the others of this module."""
