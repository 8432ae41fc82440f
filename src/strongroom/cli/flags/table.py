"""The table of the flags of `strongroom serve`.

Lives here: each flag, once, under its heading; those of a database are in database_section.py.
Must not live here: reading values (given.py), what becomes of them (settings.py). A flag whose
value is a setting as it is needs only a row here, and the field in config.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from strongroom.cli.flags import kinds
from strongroom.cli.flags.database_section import DATABASE
from strongroom.cli.flags.flag import Flag, Section

CONFIG: Final = Flag(
    "config",
    kinds.FILE,
    "A TOML file that has values of flags, with their names as keys.",
    not_in_file="a configuration file cannot name another one",
)

_CONFIGURATION: Final = Section("Configuration", (CONFIG,))

_DATA: Final = Section(
    "Data",
    (
        Flag(
            "data",
            kinds.DIRECTORY,
            "Where everything is kept; created when it is missing. With --store, it has only what "
            "this server needs: the certificate of --tls.",
            default=Path("strongroom-data"),
        ),
        Flag(
            "in-memory",
            kinds.SWITCH,
            "Keep nothing: for tests.",
            default=False,
            excludes=("data", "store", "store-file"),
            because="keeps nothing",
        ),
        Flag(
            "scrub-days",
            kinds.whole_number("DAYS", 3650),
            "Read everything in the data directory once in so many days, slowly, to find damage "
            "while there still is a backup without it; 0 never does.",
            default=30,
            setting="scrub_days",
        ),
        Flag(
            "setup",
            kinds.FILE,
            "Make what this file (TOML) names and is missing, before the server can be reached: "
            "accounts, containers, queues, tables, shares, policies, CORS, roles, sample blobs.",
        ),
        Flag(
            "setup-overwrite",
            kinds.SWITCH,
            "Set access levels, policies, CORS and roles as the file of --setup says; bytes and "
            "keys stay.",
            default=False,
            needs=("setup",),
        ),
        Flag(
            "setup-only",
            kinds.SWITCH,
            "Apply --setup to the data directory, and end.",
            default=False,
            needs=("setup",),
            excludes=("in-memory",),
            because="changes a data directory",
        ),
    ),
)

_ADDRESSES: Final = Section(
    "Addresses and ports",
    (
        Flag(
            "host",
            kinds.text("HOST"),
            "Name or address to listen on.",
            default="127.0.0.1",
            setting="host",
        ),
        Flag(
            "port-base",
            kinds.port(kinds.PORT_MAX - 3),
            "Ports of all services: PORT for blobs, and the next three for queues, tables and "
            "files; 0 takes free ones. A flag of one service overrides it.",
        ),
        Flag(
            "blob-port",
            kinds.port(),
            "Port of the Blob service; 0 takes a free one.",
            default=10000,
            setting="blob_port",
        ),
        Flag(
            "queue-port",
            kinds.port(),
            "Port of the Queue service.",
            default=10001,
            setting="queue_port",
        ),
        Flag(
            "table-port",
            kinds.port(),
            "Port of the Table service.",
            default=10002,
            setting="table_port",
        ),
        Flag(
            "file-port",
            kinds.port(),
            "Port of the File service.",
            default=10003,
            setting="file_port",
        ),
        Flag(
            "one-port",
            kinds.port(),
            "One more port for all services: /blob/ACCOUNT/..., and so for queue, table and file; "
            "a host name like ACCOUNT.blob.localhost works too.",
            setting="one_port",
        ),
        Flag(
            "host-suffix",
            kinds.DOMAIN,
            "A domain below which a label is an account, beside blob.localhost and its like; may "
            "be repeated.",
            default=(),
            repeats=True,
            setting="host_suffixes",
        ),
    ),
)

_ACCOUNTS: Final = Section(
    "Accounts",
    (
        Flag(
            "accounts-file",
            kinds.FILE,
            "Accounts file. Default: accounts.json in --data; with --store, the accounts in the "
            "store.",
        ),
        Flag(
            "account",
            kinds.text("NAME:KEY"),
            "NAME:KEY or NAME:KEY1:KEY2, keys in base64; may be repeated. For development only: "
            "every user of this machine can see it in ps.",
            default=(),
            repeats=True,
            own_variables=("STRONGROOM_ACCOUNTS", "AZURITE_ACCOUNTS"),
            not_in_file="keys of accounts belong into a file of their own: accounts-file",
        ),
        Flag(
            "allow-development-key",
            kinds.SWITCH,
            "Serve the well-known development key to other machines too. It protects nothing.",
            default=False,
            setting="allow_development_key",
        ),
    ),
)

_TLS: Final = Section(
    "TLS",
    (
        Flag(
            "tls",
            kinds.SWITCH,
            "TLS with a certificate made by the server.",
            default=False,
            excludes=("cert", "key", "pfx"),
            because="makes a certificate",
        ),
        Flag(
            "cert",
            kinds.FILE,
            "Certificate for TLS (PEM), with --key. Files of certificates are read again when they "
            "have changed.",
            needs=("key",),
        ),
        Flag("key", kinds.FILE, "Its private key (PEM), without a password.", needs=("cert",)),
        Flag(
            "pfx",
            kinds.FILE,
            "Certificate and private key in one PFX file (PKCS #12), instead of --cert and --key.",
            excludes=("cert", "key"),
            because="has certificate and key",
        ),
        Flag(
            "pfx-password-file",
            kinds.FILE,
            "A file that holds the password of the PFX file.",
            needs=("pfx",),
        ),
        Flag(
            "require-https",
            kinds.SWITCH,
            "Refuse requests over plain HTTP (400 AccountRequiresHttps), which share the ports "
            "with TLS.",
            default=False,
            setting="requires_https",
            needs=("tls", "cert", "pfx"),
        ),
    ),
)

_SMB: Final = Section(
    "File shares over SMB",
    (
        Flag(
            "smb",
            kinds.SWITCH,
            "Serve file shares over SMB 3 too; what is printed says how to mount one.",
            default=False,
        ),
        Flag(
            "smb-port",
            kinds.port(),
            "Port of SMB, with --smb; 0 takes a free one.",
            default=4450,
            needs=("smb",),
        ),
        Flag(
            "smb-encryption",
            kinds.choice("required", "offered"),
            "required: sessions of SMB are encrypted. offered: a client may choose to sign only, "
            "and SMB 2.1 is served too.",
            default="required",
            needs=("smb",),
        ),
    ),
)

_CONSOLE: Final = Section(
    "Console",
    (
        Flag(
            "console",
            kinds.SWITCH,
            "Serve the console, a page for people. Default: on loopback only, and if no port of 0 "
            "is asked for; --no-console serves none.",
        ),
        Flag(
            "console-port",
            kinds.port(),
            "Port of the console (default: 10010); 0 takes a free one.",
        ),
        Flag(
            "console-url",
            kinds.text("URL"),
            "The console's one origin behind a proxy that ends TLS: https://console.example.net.",
        ),
        Flag(
            "console-idle",
            kinds.minutes(),
            "Without a key or a click for so long, the page signs out.",
            default=30,
        ),
        Flag(
            "console-operator",
            kinds.text("ACCOUNT"),
            "The account whose key sees figures of the whole server there. Default: the only "
            "account, if there is one only.",
        ),
        Flag(
            "console-oidc-client",
            kinds.text("ID"),
            "Let people sign in at the issuer of --oauth-issuer, as this client (code flow, PKCE).",
            needs=("oauth-issuer",),
        ),
        Flag(
            "coordination-store",
            kinds.text("NAME=URL"),
            "A further store of the coordination toolkit to show to operators there; may be "
            "repeated. A password in the URL belongs in the configuration file or the "
            "environment: every user of this machine can see flags in ps.",
            default=(),
            repeats=True,
        ),
        Flag(
            "coordination-acts",
            kinds.SWITCH,
            "Let operators open gates and break locks in those stores, too.",
            default=False,
            needs=("coordination-store",),
        ),
    ),
)

_TOKENS: Final = Section(
    "Bearer tokens and roles",
    (
        Flag(
            "oauth",
            kinds.choice("basic"),
            "basic: accept bearer tokens without checking their signatures. For development, on "
            "this machine only.",
            excludes=("oauth-keys",),
            because="basic checks no signatures",
        ),
        Flag(
            "oauth-issuer",
            kinds.text(),
            "Accept bearer tokens of this issuer (their claim iss), with --oauth-keys.",
        ),
        Flag(
            "oauth-keys",
            kinds.FILE_OR_URL,
            "The issuer's public keys: a JWK Set in a file, or at an https URL.",
        ),
        Flag(
            "oauth-audience",
            kinds.text(),
            "What bearer tokens must be for (their claim aud); may be repeated. Default: "
            "https://storage.azure.com, and https://ACCOUNT.blob.core.windows.net and its like.",
            default=(),
            repeats=True,
        ),
        Flag(
            "oauth-tenant",
            kinds.text(),
            "Accept bearer tokens of this tenant only (their claim tid).",
        ),
        Flag(
            "roles-file",
            kinds.FILE,
            "Roles file. Default: roles.json in --data; with --store, the roles in the store.",
        ),
    ),
)

_COPIES: Final = Section(
    "Copies and archived blobs",
    (
        Flag(
            "copy-source-host",
            kinds.text("HOST"),
            "Copies read from listed hosts only, private ones too: NAME, *.SUFFIX or ADDRESS, "
            "with or without :PORT; may be repeated.",
            default=(),
            repeats=True,
            setting="copy_source_hosts",
        ),
        Flag(
            "rehydration-delay",
            kinds.DURATION,
            "How long an archived blob takes to become readable again after Set Blob Tier or Copy "
            "Blob, such as 15h, 30m or 10s. Default: 0s.",
            default=0.0,
        ),
        Flag(
            "rehydration-delay-high",
            kinds.DURATION,
            "The same with x-ms-rehydrate-priority: High (default: as --rehydration-delay).",
        ),
    ),
)

_WATCHING: Final = Section(
    "Watching",
    (
        Flag(
            "log-level",
            kinds.choice("debug", "info", "warning", "error"),
            "How much is logged; info: starts, stops, new accounts; debug: each request.",
            default="warning",
        ),
        Flag(
            "log-format",
            kinds.choice("text", "json"),
            "Form of the log on standard error.",
            default="text",
        ),
        Flag(
            "ready-file",
            kinds.FILE,
            "Is written when all ports are open, with the endpoints as JSON; removed at the end.",
            setting="ready_file",
        ),
        Flag(
            "access-log",
            kinds.text("FILE"),
            "A line of JSON for each request goes to FILE, or to standard output if FILE is -. "
            "SIGHUP opens the file anew.",
        ),
        Flag(
            "access-log-names",
            kinds.choice("plain", "hash", "off"),
            "How the access log and spans show the names of blobs, files, messages and entities. "
            "hash: an HMAC under the account's first key.",
            default="plain",
            needs=("access-log", "otel"),
        ),
        Flag(
            "otel",
            kinds.SWITCH,
            "Send spans of requests and commits as OpenTelemetry's OTEL_ variables say. It needs "
            "the extra strongroom[otel].",
            default=False,
        ),
        Flag(
            "metrics-anywhere",
            kinds.SWITCH,
            "Metrics for other machines too.",
            default=False,
            setting="metrics_anywhere",
        ),
        Flag(
            "own-host",
            kinds.HOST_NAME,
            "A name by which clients may reach /.strongroom/ (metrics, say; health needs none), "
            "beside IP addresses, localhost, --host and --host-suffix; may be repeated.",
            default=(),
            repeats=True,
            setting="own_hosts",
        ),
    ),
)

_TESTS: Final = Section(
    "Tests",
    (
        Flag(
            "test-clock",
            kinds.SWITCH,
            "Let tests move the clock.",
            default=False,
            setting="test_clock",
        ),
        Flag(
            "allow-reset",
            kinds.SWITCH,
            "Let a request to /.strongroom/reset remove everything. A data directory must have "
            "been created with it.",
            default=False,
            setting="allow_reset",
        ),
    ),
)

SECTIONS: Final = (
    _CONFIGURATION,
    _DATA,
    DATABASE,
    _ADDRESSES,
    _ACCOUNTS,
    _TLS,
    _SMB,
    _CONSOLE,
    _TOKENS,
    _COPIES,
    _WATCHING,
    _TESTS,
)
FLAGS: Final = tuple(flag for section in SECTIONS for flag in section.flags)
