"""`strongroom serve`: serves with the settings that the user gave, until a signal.

Lives here: what is printed. Must not live here: the flags (flags/table.py), the process and its
signals (serving/until_signal.py), how a server is put together (app.py), what settings mean
(config.py).
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import typer

from strongroom.cli.flags.command import values_of
from strongroom.cli.flags.table import FLAGS

if TYPE_CHECKING:
    from strongroom.app import App
    from strongroom.config import Settings


HELP = """
Serve until SIGTERM or SIGINT.

Without flags it serves the development account on this machine, so that the
connection string UseDevelopmentStorage=true works, and keeps its data in
./strongroom-data.

Accounts come from --account, from the environment (STRONGROOM_ACCOUNTS, else
AZURITE_ACCOUNTS: NAME:KEY or NAME:KEY1:KEY2, with ; between accounts) and from
the accounts file, which is read again when it has changed. With --store they lie in
the store in place of that file. If no account is given, the development account is
served.

Each flag has an environment variable: STRONGROOM_ and its name in capitals,
with _ for -, such as STRONGROOM_BLOB_PORT. A switch is true or false there, and
blanks separate several values. --config FILE names a TOML file whose keys are
the names of flags. The order is: flag, environment, file, default. --no-NAME
turns off a switch that the environment or the file turns on.

Bearer tokens (OAuth) are refused unless --oauth-issuer and --oauth-keys say
whose are accepted. strongroom role says what their users may do.

Examples

  strongroom serve
  strongroom serve --data /srv/strongroom --tls
  strongroom serve --host 0.0.0.0 --cert cert.pem --key key.pem
  strongroom serve --host 0.0.0.0 --own-host store.example.net
  strongroom serve --in-memory --test-clock --port-base 0
  strongroom serve --one-port 8080
  strongroom serve --smb
  strongroom serve --setup examples/setup.toml
  strongroom serve --config /etc/strongroom.toml
  STRONGROOM_ACCOUNTS='orders:a2V5' strongroom serve --blob-port 11000

Exit codes are those of strongroom --help.
"""


def serve(context: typer.Context) -> None:
    """Serve with the settings that the flags, the environment and the defaults give."""
    gc.disable()  # a pass while modules load frees nothing, since what they make stays
    try:
        from strongroom.cli.flags.settings import settings_of
    finally:
        gc.enable()

    values = values_of(context, os.environ)
    run(settings_of(FLAGS, values, os.environ))


def run(settings: Settings) -> None:
    """Serve in this process until a signal or a failure ends it."""
    from strongroom.cli.serving.until_signal import Program
    from strongroom.cli.serving.until_signal import run as run_until_signal

    def why(error: Exception) -> str:
        from strongroom.cli.import_advice import explained

        return explained(error, settings.data)

    program = Program("strongroom", _show_banner, typer.echo, explained=why)
    code = run_until_signal(settings, program)
    if code:
        raise typer.Exit(code)


def _show_banner(app: App) -> None:
    from strongroom.cli.serving.banner import banner

    typer.echo(banner(app))
