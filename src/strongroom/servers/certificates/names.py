"""The host names that a certificate is valid for.

Lives here: reading them and matching a host against them. Must not live here: the server's context
(tls.py). The module is imported only where it is needed, since the cryptography package is large.
Source: RFC 9525 sections 6.3 and 6.4 (a wildcard stands for one whole label, the first; the
subject's common name is ignored).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from cryptography import x509


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """The subject alternative names of a certificate, in lower case; addresses as text."""

    dns: tuple[str, ...]
    addresses: tuple[str, ...]

    def cover(self, host: str) -> bool:
        """Whether clients accept the certificate for this name or address."""
        try:
            return str(ipaddress.ip_address(host.strip("[]"))) in self.addresses
        except ValueError:
            name = host.lower().rstrip(".")
        _, _, domain = name.partition(".")
        return name in self.dns or (bool(domain) and f"*.{domain}" in self.dns)


def read_names(certificates: bytes) -> CertificateNames | None:
    """The names in PEM, whose first certificate is the server's; None if it cannot be parsed."""
    try:
        certificate = x509.load_pem_x509_certificates(certificates)[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return CertificateNames((), ())
    except ValueError:
        return None
    dns = tuple(name.lower() for name in names.get_values_for_type(x509.DNSName))
    return CertificateNames(dns, tuple(map(str, names.get_values_for_type(x509.IPAddress))))
