"""`strongroom container`: the protection of all blobs of a container.

Lives here: flags, and what is shown. Must not live here: how a protection may change
(semantics/blob/container_protection.py), where it is kept (identities/). Source:
"Container-level WORM policies for immutable blob data", "Legal holds for immutable blob data".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.account import edit_one
from strongroom.cli.exits import Exit, fail
from strongroom.cli.identities.options import AccountsCommand, place_of

if TYPE_CHECKING:
    from strongroom.account_switches import ContainerProtection
    from strongroom.auth.accounts import Account
    from strongroom.cli.identities.place import IdentityPlace

_HELP = """
Immutability policies and legal holds of whole containers.

A running server sees a change with the next request; all gateways of a PostgreSQL
(--store, --store-file, STRONGROOM_STORE) see it within a second. A protected blob can be
neither changed nor overwritten nor deleted; new blobs can be written. The
policy protects each blob for so long after its creation. A legal hold protects
until it is cleared.

A policy is unlocked first: it can be changed and removed. A locked one can only
be extended, five times. A protection belongs to the container's name: it may be
set before the container is created.

Examples

  strongroom container protect orders/invoices --retention 30d
  strongroom container protect orders/invoices --retention 90d --lock
  strongroom container protect orders/audit --allow-appends append-blobs
  strongroom container protect orders/invoices --legal-hold case42
  strongroom container unprotect orders/invoices --legal-hold case42
  strongroom container unprotect orders/invoices --retention
  strongroom container list --json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")

Place = Annotated[str, typer.Argument(help="ACCOUNT/CONTAINER.")]
Holds = Annotated[
    list[str] | None,
    typer.Option("--legal-hold", help="A hold's tag, 3 to 23 letters and digits; repeatable."),
]
_APPENDS = {"append-blobs": True, "none": False}

Change = Callable[["ContainerProtection"], "ContainerProtection"]


@app.command("protect", cls=AccountsCommand)
def protect(
    context: typer.Context,
    place: Place,
    retention: Annotated[
        str | None, typer.Option(help="Protect each blob for so long: 1d to 146000d.")
    ] = None,
    lock: Annotated[
        bool, typer.Option("--lock", help="Lock the policy, for good: it can only be extended.")
    ] = False,
    legal_hold: Holds = None,
    *,
    allow_appends: Annotated[
        str | None,
        typer.Option(help="Blocks may be added to append-blobs all the same, or to none."),
    ] = None,
) -> None:
    """Set, extend or lock a container's policy, and add legal holds. What is not given stays."""
    from strongroom.semantics.blob import container_protection as rules

    days = None if retention is None else _days(retention)
    appends = None if allow_appends is None else _appends(allow_appends)
    if days is None and appends is None and not lock and not legal_hold:
        fail(Exit.USAGE, "nothing to set: give --retention, --lock, --allow-appends, --legal-hold")

    def change(before: ContainerProtection) -> ContainerProtection:
        after = rules.with_retention(before, days, lock, appends)
        return rules.with_holds(after, legal_hold or ())

    kept = place_of(context)
    _change(place, kept, change)
    typer.echo(f"Container {place} is protected.{kept.seen}")
    account, _, container = place.partition("/")
    if not kept.may_exist(account, container):
        typer.echo(
            f"Note: there is no container {place} in {kept.data_at} now; it is protected once it "
            "is created.",
            err=True,
        )


@app.command("unprotect", cls=AccountsCommand)
def unprotect(
    context: typer.Context,
    place: Place,
    retention: Annotated[
        bool, typer.Option("--retention", help="Remove the policy, which must be unlocked.")
    ] = False,
    legal_hold: Holds = None,
) -> None:
    """Remove a container's policy, and clear legal holds."""
    from strongroom.semantics.blob import container_protection as rules

    if not retention and not legal_hold:
        fail(Exit.USAGE, "nothing to remove: give --retention, --legal-hold, or both")

    def change(before: ContainerProtection) -> ContainerProtection:
        after = rules.without_retention(before) if retention else before
        return rules.without_holds(after, legal_hold or ())

    kept = place_of(context)
    _change(place, kept, change)
    typer.echo(f"Container {place} is changed.{kept.seen}")


@app.command("list", cls=AccountsCommand)
def list_protections(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the containers that are protected."""
    rows = [
        (f"{account.name}/{name}", protection)
        for account in place_of(context).accounts()
        for name, protection in sorted(account.switches.containers.items())
    ]
    if as_json:
        typer.echo(json.dumps([_facts(place, found) for place, found in rows], indent=2))
        return
    if not rows:
        typer.echo("No container is protected.")
    for place, found in rows:
        typer.echo("  ".join((place, *_words(found))))


def _facts(place: str, protection: ContainerProtection) -> dict[str, object]:
    return {
        "container": place,
        "retention_days": protection.retention_days,
        "locked": protection.locked,
        "extensions": protection.extensions,
        "legal_holds": list(protection.holds),
        "allow_appends": "append-blobs" if protection.appends else "none",
    }


def _words(protection: ContainerProtection) -> list[str]:
    words = []
    if protection.retention_days:
        state = "locked" if protection.locked else "unlocked"
        words.append(f"retention {protection.retention_days}d {state}")
    if protection.holds:
        words.append(f"legal holds {', '.join(protection.holds)}")
    if protection.appends:
        words.append("appends allowed")
    return words


def _days(text: str) -> int:
    number = text.removesuffix("d")
    if number == text or not (number.isascii() and number.isdigit() and 0 < len(number) <= 6):
        fail(Exit.USAGE, f"--retention {text!r}: give days such as 7d")
    if int(number) == 0:
        fail(Exit.USAGE, "--retention: at least 1d; 'container unprotect' removes a policy")
    return int(number)


def _appends(text: str) -> bool:
    if text not in _APPENDS:
        fail(Exit.USAGE, f"--allow-appends {text!r}: give {' or '.join(_APPENDS)}")
    return _APPENDS[text]


def _change(place: str, kept: IdentityPlace, change: Change) -> None:
    import msgspec

    from strongroom.semantics.blob import container_protection as rules
    from strongroom.semantics.core import names

    account, _, container = place.partition("/")
    if not account or not names.is_container_name(container):
        fail(Exit.USAGE, f"{place!r}: give ACCOUNT/CONTAINER, with a name a container can have")

    def changed(before: Account) -> Account:
        switches = before.switches
        try:
            after = change(switches.containers.get(container, rules.NOTHING))
        except rules.ProtectionError as error:
            fail(Exit.REFUSED, f"{place}: {error}")
        others = {name: one for name, one in switches.containers.items() if name != container}
        if after.retention_days or after.holds:
            others[container] = after
        return before.switched(msgspec.structs.replace(switches, containers=others))

    kept.change_accounts(edit_one(account, changed))
