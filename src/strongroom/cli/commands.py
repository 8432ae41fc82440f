"""The commands of `strongroom`, under headings. Each is imported when it is called.

Lives here: which commands there are. A heading has a function that imports its commands, and a line
for each, which `strongroom --help` shows. So help and each command start without the modules of the
others.
"""

from __future__ import annotations

import typer

from strongroom.cli.layout import Heading


def _server() -> typer.Typer:
    from strongroom.cli import backup, doctor, serve, store, upgrade
    from strongroom.cli.flags.command import FlagsCommand
    from strongroom.cli.imports import azurite
    from strongroom.cli.watching import status

    app = typer.Typer()
    app.command("serve", help=serve.HELP, cls=FlagsCommand)(serve.serve)
    app.command("status", help=status.HELP)(status.status)
    app.command("backup", help=backup.BACKUP_HELP)(backup.backup)
    app.command("restore", help=backup.RESTORE_HELP)(backup.restore)
    app.command("doctor", help=doctor.HELP)(doctor.doctor)
    app.command("upgrade", help=upgrade.HELP)(upgrade.upgrade)
    app.command("import-azurite", help=azurite.HELP)(azurite.import_azurite)
    app.add_typer(store.app, name="store")
    return app


def _rights() -> typer.Typer:
    from strongroom.cli import account, container, files, role

    app = typer.Typer()
    app.add_typer(account.app, name="account")
    app.add_typer(role.app, name="role")
    app.add_typer(container.app, name="container")
    app.add_typer(files.app, name="files")
    return app


def _nodes() -> typer.Typer:
    from strongroom.cli.coordination import coordinate, lock, locks, members, slots

    app = typer.Typer()
    app.command("lock", help=lock.LOCK_HELP)(lock.lock)
    app.command("elect", help=lock.ELECT_HELP)(lock.elect)
    app.command("sem", help=slots.SEM_HELP)(slots.sem)
    app.command("rwlock", help=slots.RWLOCK_HELP)(slots.rwlock)
    app.command("barrier", help=slots.BARRIER_HELP)(slots.barrier)
    app.add_typer(coordinate.gate_app, name="gate")
    app.add_typer(members.members_app, name="members")
    app.add_typer(coordinate.ids_app, name="ids")
    app.add_typer(locks.locks_app, name="locks")
    return app


def _stores() -> typer.Typer:
    from strongroom.cli.coordination import coordinate, sim

    app = typer.Typer()
    app.command("check-store", help=coordinate.CHECK_HELP)(coordinate.check_store)
    app.command("sim", help=sim.HELP)(sim.sim)
    return app


# In the order in which people need them.
HEADINGS = (
    Heading(
        "The server and its data",
        _server,
        {
            "serve": "Serve until SIGTERM or SIGINT.",
            "status": "Say how a running server is.",
            "backup": "Copy a data directory, also while a server has it open.",
            "restore": "Make a new data directory from a backup, which stays as it is.",
            "doctor": "Check that a data directory, a backup or a store in PostgreSQL is whole.",
            "upgrade": "Convert a data directory or a backup from the previous format to the "
            "present one.",
            "import-azurite": "Make a new data directory from a folder that Azurite wrote.",
            "store": "The PostgreSQL that keeps the data of strongroom serve --store.",
        },
    ),
    Heading(
        "Who may do what",
        _rights,
        {
            "account": "Accounts and their keys.",
            "role": "Roles of users who send bearer tokens (OAuth).",
            "container": "Immutability policies and legal holds of whole containers.",
            "files": "List and close the handles that SMB clients have open on a running server.",
        },
    ),
    Heading(
        "Nodes that agree",
        _nodes,
        {
            "lock": "Run a command under a lock.",
            "elect": "Run a command while this node is the leader.",
            "sem": "Run a command while holding one of so many permits.",
            "rwlock": "Run a command among the readers of something, or as its only writer.",
            "gate": "A gate that many nodes wait at.",
            "barrier": "Wait until so many are there; then all go on.",
            "members": "The members of a group and their data; join it, and watch who joins and "
            "leaves.",
            "ids": "Unique ids: no two callers get the same one.",
            "locks": "Inspect locks, elections, semaphores, read-write locks and barriers from "
            "outside, and break holds.",
        },
    ),
    Heading(
        "Stores where nodes meet",
        _stores,
        {
            "check-store": "Say what a lock on a store is worth, and try the store.",
            "sim": "Play simulations of the coordination toolkit.",
        },
    ),
)
