"""Write the image's commands where entrypoint.py finds them: one for each console script of the
installed packages of this project.

Used by Containerfile, inside of the image that is built. `make image` does this from the wheels.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

_COMMANDS = Path("/usr/lib/strongroom/bin")
_PREFIXES = ("strongroom", "azurite")
_SCRIPT = """\
#!/usr/bin/python3 -I
import sys

from {module} import {function}

sys.exit({function}())
"""


def main() -> None:
    """Write them."""
    _COMMANDS.mkdir(parents=True, exist_ok=True)
    for script in entry_points(group="console_scripts"):
        if script.name.startswith(_PREFIXES):
            module, _, function = script.value.partition(":")
            path = _COMMANDS / script.name
            path.write_text(_SCRIPT.format(module=module, function=function), encoding="utf-8")
            path.chmod(0o755)


if __name__ == "__main__":
    main()
