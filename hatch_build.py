"""The metadata that depends on where the repository lies: addresses, and the README's links.

Lives here: what hatchling calls while it builds (`[tool.hatch.metadata.hooks.custom]`). Must not
live here: metadata that is known beforehand; it is in pyproject.toml. Source: the core metadata
specifications, "Project-URL" and "Description".

The environment variable STRONGROOM_REPOSITORY is the address under which people find the
repository. A release sets it. Without it a distribution names no address, and the README's links
stay as they are. A wheel that is built from an sdist has the addresses of the sdist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_VARIABLE = "STRONGROOM_REPOSITORY"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
# A link to a file of the repository: not an address, not a place on the same page.
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")
# A picture of the repository: readers elsewhere need its bytes, not a page about it.
_PICTURE = re.compile(r"(!\[[^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")
_SOURCE = "Source"


class Addresses(MetadataHookInterface):
    """Fills in the dynamic fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both fields in the table `project`. Raises ValueError for an impossible address."""
        root = Path(self.root)
        repository = os.environ.get(_VARIABLE) or recorded_repository(root)
        tag = f"v{version_of(root)}"
        metadata["urls"] = urls(repository, tag)
        text = with_addresses((root / "README.md").read_text(encoding="utf-8"), repository, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def urls(repository: str, tag: str) -> Mapping[str, str]:
    """Return the labelled addresses of a release; none where the repository has no address."""
    if not repository:
        return {}
    if not repository.startswith("https://") or re.search(r"[\s?#@]", repository):
        raise ValueError(
            f"{_VARIABLE} must be an https address without a query, not {repository!r}"
        )
    base = repository.rstrip("/")
    return {
        "Homepage": base,
        "Documentation": f"{base}/blob/{tag}/docs/start/operator.md",
        _SOURCE: base,
        "Issues": f"{base}/issues",
        "Changelog": f"{base}/blob/{tag}/CHANGELOG.md",
        "Security": f"{base}/blob/{tag}/SECURITY.md",
    }


def with_addresses(readme: str, repository: str, tag: str) -> str:
    """Return the README with whole addresses for its links to files, of the same release."""
    if not repository:
        return readme
    base = repository.rstrip("/")
    text = _PICTURE.sub(lambda found: f"{found[1]}]({base}/raw/{tag}/{found[2]})", readme)
    return _LINK.sub(lambda found: f"]({base}/blob/{tag}/{found[1]})", text)


def version_of(root: Path) -> str:
    """Return the version, which is written in one place."""
    text = (root / "src/strongroom/__init__.py").read_text(encoding="utf-8")
    found = _VERSION.search(text)
    if found is None:
        raise ValueError("src/strongroom/__init__.py has no line `__version__ = ...`")
    return found[1]


def recorded_repository(root: Path) -> str:
    """Return the address that an unpacked sdist was built with; "" in a checkout."""
    path = root / "PKG-INFO"
    if not path.is_file():
        return ""
    headers = HeaderParser().parsestr(path.read_text(encoding="utf-8"))
    labelled = (entry.split(", ", 1) for entry in headers.get_all("Project-URL", []))
    return next((address for label, address in labelled if label == _SOURCE), "")
