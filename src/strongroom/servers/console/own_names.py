"""The host names by which the console may be opened, beside addresses and localhost (rule:
origin.py)."""

from __future__ import annotations

import ssl

from strongroom.servers.certificates.served import ServedCertificate
from strongroom.servers.certificates.tls import TlsUnusable


class OwnNames:
    """The names of this server.

    Arguments:
        names: given ones, in lower case.
        tls: the certificate in use, whose names count too; None = there is none.
    """

    def __init__(self, names: frozenset[str], tls: ServedCertificate | None) -> None:
        self._names = names
        self._tls = tls
        self._read_for: ssl.SSLContext | None = None
        self._certified: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Whether a host name, in lower case, is one of this server."""
        if name in self._names:
            return True
        certified = self._of_certificate()
        _, _, domain = name.partition(".")
        return name in certified or (bool(domain) and f"*.{domain}" in certified)

    def _of_certificate(self) -> frozenset[str]:
        """Return the names in the certificate; they are read once for each that is in use."""
        if self._tls is None or self._tls.context() is self._read_for:
            return self._certified
        from strongroom.servers.certificates.names import read_names  # large, as TLS is

        self._read_for = self._tls.context()
        try:
            names = read_names(self._tls.files.read_certificates())
        except (TlsUnusable, OSError):
            return self._certified  # the files are being replaced: those of the last one
        self._certified = frozenset(() if names is None else names.dns)
        return self._certified
