"""The bill of materials of the image, from its list of packages.

Source of the form: CycloneDX 1.6 as JSON; package URLs as in the purl specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from deploy.image.lock import Lock, Package
from deploy.image.root_file_system import Contents
from deploy.image.wheels import Wheel

_LICENCE_LENGTH_MAX = 100  # more is the text of a licence, not its name


def sbom(
    lock: Lock,
    contents: Contents,
    architecture: str,
    own: Sequence[tuple[Wheel, str]],
    dependencies: Iterable[Wheel],
) -> bytes:
    """Return the bill of materials.

    Arguments:
        own: this project's wheels, the server's first, with their SHA-256.
        dependencies: what the locked wheels say of themselves.
    """
    licences = {wheel.name: wheel.licence for wheel in dependencies}
    distribution = f"arch={architecture}&distro=debian-{contents.debian_version}"
    parts = [
        _part(one, f"pkg:deb/debian/{one.name}@{quote(one.version)}?{distribution}")
        for one in lock.of("deb")
    ]
    parts += [
        _part(one, f"pkg:pypi/{one.name}@{one.version}", licences.get(one.name, ""))
        for one in lock.of("wheel")
    ]
    parts += [
        _part(
            Package("wheel", wheel.name, wheel.version, digest),
            f"pkg:pypi/{wheel.name}@{wheel.version}",
            wheel.licence,
        )
        for wheel, digest in own
    ]
    server = own[0][0]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": f"{lock.day}T00:00:00Z",
            "component": {
                "type": "container",
                "name": "strongroom",
                "version": server.version,
                "bom-ref": f"strongroom-image@{server.version}",
            },
        },
        "components": parts,
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _part(package: Package, url: str, licence: str = "") -> dict[str, object]:
    found: dict[str, object] = {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": url,
        "bom-ref": url,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }
    if licence and len(licence) <= _LICENCE_LENGTH_MAX and "\n" not in licence:
        found["licenses"] = [{"license": {"name": licence}}]
    return found
