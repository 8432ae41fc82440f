"""The image as one file that `podman load` and `docker load` take.

Lives here: the configuration, the manifest, and the archive, whose bytes depend on the layers and
the settings alone. Must not live here: what is in the layers. Sources: the OCI image specification
("Image Layout", "Image Configuration"); Docker's image specification for `Healthcheck`, which OCI
has not, and for manifest.json.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_SECOND_NS = 1_000_000_000
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a container of the image runs.

    Attributes:
        seconds: the image's date, since 1970.
        names: names with a tag, as `strongroom:0.1.0`.
    """

    architecture: str
    seconds: int
    names: tuple[str, ...]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    healthcheck: tuple[str, ...]
    ports: tuple[int, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Archive:
    """An image as a file, with the digests of its uncompressed layers."""

    data: bytes
    layers: tuple[str, ...]
    compressed_bytes: int


def archive(layers: Sequence[bytes], settings: Settings) -> Archive:
    """Return the image of some layers, the lowest first."""
    plain = tuple(_digest(layer) for layer in layers)
    packed = [gzip.compress(layer, compresslevel=9, mtime=0) for layer in layers]
    config = _json(_config(plain, settings))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer) for layer in packed],
        }
    )
    files = {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (config, manifest, *packed)}
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = _json(_index(manifest, settings))
    files["manifest.json"] = _json(
        [
            {
                "Config": f"blobs/sha256/{_digest(config)[7:]}",
                "RepoTags": list(settings.names),
                "Layers": [f"blobs/sha256/{_digest(layer)[7:]}" for layer in packed],
            }
        ]
    )
    return Archive(_tar(files, settings.seconds), plain, sum(map(len, packed)))


def _config(layers: Sequence[str], settings: Settings) -> dict[str, object]:
    created = datetime.fromtimestamp(settings.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "architecture": settings.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Cmd": list(settings.command),
            "Entrypoint": list(settings.entrypoint),
            "Env": [f"{name}={value}" for name, value in settings.environment.items()],
            "ExposedPorts": {f"{port}/tcp": {} for port in settings.ports},
            "Healthcheck": {
                "Test": ["CMD", *settings.healthcheck],
                "Interval": 30 * _SECOND_NS,
                "Timeout": 20 * _SECOND_NS,
                "StartPeriod": 30 * _SECOND_NS,
                "Retries": 3,
            },
            "Labels": dict(settings.labels),
            "StopSignal": "SIGTERM",
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
        },
        "history": [
            {"created": created, "created_by": "deploy/image", "comment": what}
            for what in ("Debian", "Python packages", "Strongroom")
        ],
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
    }


def _index(manifest: bytes, settings: Settings) -> dict[str, object]:
    where = {"architecture": settings.architecture, "os": "linux"}
    return {
        "schemaVersion": 2,
        "mediaType": _INDEX,
        "manifests": [
            {
                **_descriptor(_MANIFEST, manifest),
                "platform": where,
                "annotations": {"org.opencontainers.image.ref.name": name},
            }
            for name in settings.names
        ],
    }


def _descriptor(media_type: str, data: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _tar(files: Mapping[str, bytes], seconds: int) -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), seconds, 0o644
            packed.addfile(member, io.BytesIO(data))
    return found.getvalue()
