"""`strongroom account`: accounts and their keys, in an accounts file or in a database.

Lives here: flags, and what is shown. Must not live here: where the accounts are (identities/), what
a file or a row says (auth/accounts.py). A key is never an argument, since `ps` shows arguments. A
key is printed only by the command that made it, or with `--show`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.identities import moves
from strongroom.cli.identities.options import AccountsCommand, place_of

if TYPE_CHECKING:
    from strongroom.auth.accounts import Account
    from strongroom.servers.identities.accounts_file import Edit

_HELP = """
Accounts and their keys.

A running server sees a change with the next request. With --store, --store-file or
STRONGROOM_STORE, the accounts are those in the PostgreSQL of serve --store, and all
gateways of it see a change within a second.

Both keys of an account sign: rotate makes a new first key and keeps the one
before as the second, so that clients can change over; remove-old-key then
ends it. remove ends both keys, and refuses if the account has data, which would not be
served any more. set changes what Azure switches for a whole account.

Examples

  strongroom account add orders
  strongroom account rotate orders
  strongroom account remove-old-key orders
  strongroom account remove orders
  strongroom account remove orders --leave-data
  strongroom account set orders --container-retention 7d
  strongroom account set orders --versioning on
  strongroom account set orders --immutability on
  strongroom account list --json
  strongroom account add orders --key-stdin < orders.key
  strongroom account add orders --store-file /etc/strongroom/store
  strongroom account import --data ./data --store postgresql:///strongroom
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")
app.command("import", cls=AccountsCommand)(moves.import_)
app.command("export", cls=AccountsCommand)(moves.export)

Name = Annotated[str, typer.Argument(help="3 to 24 lower-case letters and digits.")]
KeyStdin = Annotated[
    bool,
    typer.Option("--key-stdin", help="Read the key (base64) from standard input, don't make one."),
]
_LEAVE_DATA = "Remove it even if it has data, which then stays and is not served."


@app.command("add", cls=AccountsCommand)
def add(context: typer.Context, name: Name, key_stdin: KeyStdin = False) -> None:
    """Add an account. Prints the key that was made for it."""
    from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME, named_account

    key = _new_key(key_stdin)
    others: list[str] = []

    def edit(accounts: tuple[Account, ...]) -> tuple[Account, ...]:
        if any(account.name == name for account in accounts):
            fail(Exit.REFUSED, f"there is an account {name!r} already; rotate gives it a new key")
        others[:] = [account.name for account in accounts]
        return (*accounts, named_account(name, (key,)))

    place = place_of(context)
    place.change_accounts(edit)
    _print_result(f"Account {name} is in {place.accounts_at}.", key, key_stdin)
    if not others and name != DEVELOPMENT_ACCOUNT_NAME:
        typer.echo(
            f"It is the first account there, so a running server ends {DEVELOPMENT_ACCOUNT_NAME}, "
            "the development account, unless --account or STRONGROOM_ACCOUNTS names it. Its data "
            "stays."
        )


@app.command("remove", cls=AccountsCommand)
def remove(
    context: typer.Context,
    name: Name,
    leave_data: Annotated[bool, typer.Option("--leave-data", help=_LEAVE_DATA)] = False,
) -> None:
    """Remove an account and its keys, if it has no data. The data directory or the database is read
    for that, beside a running server too."""
    place = place_of(context)
    problem = place.held_data_problem(name)

    def edit(accounts: tuple[Account, ...]) -> tuple[Account, ...]:
        found = next((account for account in accounts if account.name == name), None)
        if found is None:
            fail(Exit.REFUSED, f"there is no account {name!r}{_known(accounts)}")
        if found.switches.containers:
            fail(
                Exit.REFUSED,
                f"account {name!r} has protected containers, whose policies and holds would be "
                "lost with it; strongroom container list names them",
            )
        if len(accounts) == 1:
            fail(
                Exit.REFUSED,
                f"{name!r} is the last account: without any, the development account would be "
                "served, whose key everybody knows. Add another account first.",
            )
        if problem is not None and not leave_data:
            fail(Exit.REFUSED, f"{problem}. --leave-data removes the account all the same")
        return tuple(account for account in accounts if account.name != name)

    place.change_accounts(edit)
    left = "" if problem is None else " Data that it has stays, and is not served."
    typer.echo(f"Account {name} is not in {place.accounts_at} any more.{left}{place.seen}")


def _known(accounts: tuple[Account, ...]) -> str:
    names = ", ".join(account.name for account in accounts)
    return f"; there are: {names}" if names else ""


@app.command("rotate", cls=AccountsCommand)
def rotate(context: typer.Context, name: Name, key_stdin: KeyStdin = False) -> None:
    """Give an account a new first key; its first key until now becomes the second and still works.

    A second key that there was before is gone.
    """
    key = _new_key(key_stdin)
    place = place_of(context)
    place.change_accounts(edit_one(name, lambda account: account.rotated(key)))
    text = f"Account {name} has a new key; the old one works until remove-old-key {name}."
    _print_result(text + place.seen, key, key_stdin)


@app.command("remove-old-key", cls=AccountsCommand)
def remove_old_key(context: typer.Context, name: Name) -> None:
    """End an account's second key: only the newest one works from now on."""
    place = place_of(context)
    place.change_accounts(edit_one(name, lambda account: account.without_old_key()))
    typer.echo(f"Account {name} has one key.{place.seen}")


@app.command("set", cls=AccountsCommand)
def set_switches(
    context: typer.Context,
    name: Name,
    container_retention: Annotated[
        str | None,
        typer.Option(
            help="Keep deleted containers for 1d to 365d, so that they can be restored; or off."
        ),
    ] = None,
    share_retention: Annotated[
        str | None,
        typer.Option(help="Keep deleted file shares in the same way: 1d to 365d, or off."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="What Get Account Information says, e.g. StorageV2.")
    ] = None,
    *,
    versioning: Annotated[
        str | None,
        typer.Option(help="on: keep a blob's earlier states as versions; off: make none."),
    ] = None,
    immutability: Annotated[
        str | None,
        typer.Option(help="Let blobs have immutability policies and legal holds: on, for good."),
    ] = None,
    last_access: Annotated[
        str | None, typer.Option(help="Track when blobs are read, to a day: on or off.")
    ] = None,
) -> None:
    """Switch something for a whole account. What is not given stays as it is."""
    import msgspec

    from strongroom.account_switches import DEFAULT_SWITCHES

    changes: dict[str, object] = {}
    if container_retention is not None:
        changes["container_retention_days"] = _days("--container-retention", container_retention)
    if share_retention is not None:
        changes["share_retention_days"] = _days("--share-retention", share_retention)
    if kind is not None:
        changes["kind"] = kind
    if versioning is not None:
        changes["versioning"] = _is_on("--versioning", versioning)
    if immutability is not None:
        changes["immutability"] = _only_on("--immutability", immutability)
    if last_access is not None:
        changes["last_access"] = _is_on("--last-access", last_access)
    if not changes:
        fail(Exit.USAGE, "nothing to set: 'strongroom account set --help' lists what there is")
    problem = msgspec.structs.replace(DEFAULT_SWITCHES, **changes).problem()
    if problem is not None:
        fail(Exit.USAGE, problem)
    set_to: list[Account] = []

    def change(account: Account) -> Account:
        set_to.append(account.switched(msgspec.structs.replace(account.switches, **changes)))
        return set_to[-1]

    place = place_of(context)
    place.change_accounts(edit_one(name, change))
    shown = ", ".join(_switched(set_to[-1])) or "all switches have their defaults"
    typer.echo(f"Account {name} is set: {shown}.{place.seen}")


def _days(option: str, text: str) -> int:
    """Return the days of `7d`, and 0 for `off`."""
    number = text.removesuffix("d")
    if text == "off":
        return 0
    if number == text or not (number.isascii() and number.isdigit() and len(number) <= 3):
        fail(Exit.USAGE, f"{option} {text!r}: give days such as 7d, or off")
    return int(number)


def _is_on(option: str, text: str) -> bool:
    """Return True for `on` and False for `off`; end the command for any other text."""
    if text not in ("on", "off"):
        fail(Exit.USAGE, f"{option} {text!r}: give on or off")
    return text == "on"


def _only_on(option: str, text: str) -> bool:
    """Return True for `on`. As in Azure, what protects data cannot be switched off again."""
    if text == "off":
        fail(Exit.REFUSED, f"{option}: it cannot be switched off, since blobs may rely on it")
    if text != "on":
        fail(Exit.USAGE, f"{option} {text!r}: give on")
    return True


@app.command("list", cls=AccountsCommand)
def list_accounts(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show the keys too.")] = False,
) -> None:
    """List the accounts of the file or the database."""
    place = place_of(context)
    accounts = place.accounts()
    if as_json:
        typer.echo(json.dumps([_facts(account, show) for account in accounts], indent=2))
        return
    if not accounts:
        typer.echo(f"No accounts in {place.accounts_at}.")
    for account in accounts:
        keys = "one key" if len(account.keys) == 1 else f"{len(account.keys)} keys"
        typer.echo("  ".join((account.name, keys, *_switched(account))))
        for text in _texts(account) if show else ():
            typer.echo(f"  {text}")


def _switched(account: Account) -> list[str]:
    """Return the switches that differ from their defaults, in words."""
    from strongroom.account_switches import DEFAULT_SWITCHES

    words = []
    switches = account.switches
    if switches.kind != DEFAULT_SWITCHES.kind:
        words.append(f"kind {switches.kind}")
    if switches.container_retention_days:
        words.append(f"container retention {switches.container_retention_days}d")
    if switches.share_retention_days:
        words.append(f"share retention {switches.share_retention_days}d")
    if switches.versioning:
        words.append("versioning")
    if switches.immutability:
        words.append("immutability on")
    if switches.last_access:
        words.append("last access on")
    if switches.containers:
        words.append(f"protected containers {len(switches.containers)}")
    return words


def _facts(account: Account, show: bool) -> dict[str, object]:
    facts: dict[str, object] = {"name": account.name, "key_count": len(account.keys)}
    facts["kind"] = account.switches.kind
    facts["container_retention_days"] = account.switches.container_retention_days
    facts["share_retention_days"] = account.switches.share_retention_days
    facts["versioning"] = account.switches.versioning
    facts["immutability"] = account.switches.immutability
    facts["last_access"] = account.switches.last_access
    return facts | {"keys": _texts(account)} if show else facts


def _texts(account: Account) -> list[str]:
    return [base64.b64encode(key).decode() for key in account.keys]


def _new_key(from_stdin: bool) -> bytes:
    from strongroom.auth.accounts import GENERATED_KEY_BYTES
    from strongroom.clock import SystemClock

    if not from_stdin:
        return SystemClock().random_bytes(GENERATED_KEY_BYTES)
    try:
        key = base64.b64decode(sys.stdin.readline().strip(), validate=True)
    except ValueError:
        fail(Exit.USAGE, "the key on standard input is not base64")
    if not key:
        fail(Exit.USAGE, "there is no key on standard input")
    return key


def edit_one(name: str, change: Callable[[Account], Account]) -> Edit:
    """Return an edit that changes one account; it fails if the account is absent."""

    def edit(accounts: tuple[Account, ...]) -> tuple[Account, ...]:
        if all(account.name != name for account in accounts):
            fail(Exit.REFUSED, f"there is no account {name!r}{_known(accounts)}")
        return tuple(change(account) if account.name == name else account for account in accounts)

    return edit


def _print_result(text: str, key: bytes, given: bool) -> None:
    typer.echo(text)
    if not given:
        typer.echo(f"Key: {base64.b64encode(key).decode()}")
