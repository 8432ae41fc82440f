"""The certificate of new connections: it is taken from its files again when they have changed.

Lives here: noticing changes, and what happens if the new files cannot be used. Must not live here:
reading them (tls.py, pfx.py). Connections keep the certificate with which they began.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from strongroom.servers.certificates.tls import TlsUnusable, load_context

# A pair of files is replaced in two steps, so a change is noticed only once both are likely there.
CHECK_EVERY_S = 5.0
_REMAKE_EVERY_S: Final = 3600.0
_log = logging.getLogger(__name__)

Stamp = tuple[int, ...] | None
"""What changes with a file; None = there is none."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """Where a certificate comes from.

    Attributes:
        paths: the files that it and its key are read from.
        load: returns a context with it. Raises: TlsUnusable, OSError.
        read_certificates: returns the certificates as PEM, the server's first. Raises: TlsUnusable,
            OSError.
        remake: makes the files anew if the certificate is about to expire; None = somebody else
            does. Raises: OSError.
    """

    paths: tuple[Path, ...]
    load: Callable[[], ssl.SSLContext]
    read_certificates: Callable[[], bytes]
    remake: Callable[[], object] | None = None


def pem_files(
    certificate: Path, key: Path, remake: Callable[[], object] | None = None
) -> CertificateFiles:
    return CertificateFiles(
        (certificate, key),
        lambda: load_context(certificate, key),
        certificate.read_bytes,
        remake,
    )


def pfx_file(
    file: Path, password_file: Path | None, random_bytes: Callable[[int], bytes]
) -> CertificateFiles:
    """`random_bytes` returns as many unpredictable bytes as asked for."""
    from strongroom.servers.certificates.pfx import read_pfx

    def load() -> ssl.SSLContext:
        password = random_bytes(32).hex().encode()
        return read_pfx(file, password_file, password).context(password)

    return CertificateFiles(
        (file,) if password_file is None else (file, password_file),
        load,
        lambda: read_pfx(file, password_file, random_bytes(32).hex().encode()).certificates,
    )


class ServedCertificate:
    """The certificate in use. Raises: TlsUnusable, OSError."""

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self._tried = _stamps(files.paths)
        self._context = files.load()

    def context(self) -> ssl.SSLContext:
        return self._context

    def check(self) -> bool:
        """Take the certificate from its files if they have changed; return whether it was taken.

        If they cannot be used, the log says so once, and the certificate in use stays. So it does
        between the two steps in which a certificate and its key are replaced.
        """
        stamps = _stamps(self.files.paths)
        if stamps == self._tried:
            return False
        self._tried = stamps
        try:
            self._context = self.files.load()
        except (TlsUnusable, OSError) as error:
            _log.warning("%s; new connections still get the previous certificate", error)
            return False
        _log.info("new connections get the new certificate of %s", self.files.paths[0])
        return True

    async def watch(self) -> None:
        self._warn_of_unreadable()
        loop = asyncio.get_running_loop()
        remade_s = loop.time()
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            if self.files.remake is not None and loop.time() - remade_s >= _REMAKE_EVERY_S:
                remade_s = loop.time()
                await loop.run_in_executor(None, self._remake, self.files.remake)
            await loop.run_in_executor(None, self.check)

    def _remake(self, remake: Callable[[], object]) -> None:
        try:
            remake()
        except OSError as error:
            _log.warning("the certificate cannot be renewed: %s", error)

    def _warn_of_unreadable(self) -> None:
        """Say if a renewed certificate will need a restart, since privileges were dropped."""
        for path in self.files.paths:
            try:
                path.open("rb").close()
            except PermissionError:
                _log.warning(
                    "%s cannot be read by the user that the server runs as. It serves with what it "
                    "read at its start; a renewed certificate needs a restart",
                    path,
                )
            except OSError:
                continue  # the next check says so if it lasts


def _stamps(paths: tuple[Path, ...]) -> list[Stamp]:
    return [_stamp(path) for path in paths]


def _stamp(path: Path) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
