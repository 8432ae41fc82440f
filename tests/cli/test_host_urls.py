"""The start-up text names the URLs in host style that the server's certificate is valid for."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from strongroom.servers.certificates.names import CertificateNames, read_names
from strongroom.testing import Server

ACCOUNT = "devstoreaccount1"


def certified(folder: Path, *names: x509.GeneralName) -> tuple[str, ...]:
    """The flags of a server with a certificate for these names; its own name is another."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{ACCOUNT}.common.test")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(own)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(key, hashes.SHA256())
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return "--cert", str(certificate), "--key", str(private)


def dns(name: str) -> x509.GeneralName:
    return x509.DNSName(name)


def ports(server: Server) -> list[str]:
    urls = (server.url, server.queue_url, server.table_url, server.file_url)
    return [url.rpartition(":")[2] for url in urls]


def test_a_wildcard_for_each_service(tmp_path: Path) -> None:
    names = [dns(f"*.{service}.example.test") for service in ("blob", "queue", "table", "file")]
    flags = certified(tmp_path, *names)
    for service in ("blob", "queue", "table", "file"):
        flags += ("--host-suffix", f"{service}.example.test")
    with Server.start(flags=flags) as server:
        text = server.output()
        blob, queue, table, file = ports(server)
        expected = {
            "blob": f"https://{ACCOUNT}.blob.example.test:{blob}",
            "queue": f"https://{ACCOUNT}.queue.example.test:{queue}",
            "table": f"https://{ACCOUNT}.table.example.test:{table}",
            "file": f"https://{ACCOUNT}.file.example.test:{file}",
        }
        for service, url in expected.items():
            assert f"{service} service" in text and text.count(url) == 2, text
        assert "BlobEndpoint=" + expected["blob"] + ";" in text
        # The certificate is not valid for this address.
        assert f"https://127.0.0.1:{blob}/{ACCOUNT}" not in text
        assert "valid for *.blob.example.test, *.queue.example.test" in text


def test_exact_names_beside_the_address(tmp_path: Path) -> None:
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    flags = certified(tmp_path, dns(f"{ACCOUNT}.storage.test"), address)
    more = ("--host-suffix", "storage.test", "--host-suffix", "other.test")
    with Server.start(flags=(*flags, *more)) as server:
        text = server.output()
        blob, queue, *_ = ports(server)
        assert f"BlobEndpoint=https://127.0.0.1:{blob}/{ACCOUNT};" in text
        for port in (blob, queue):
            assert f"https://{ACCOUNT}.storage.test:{port}\n" in text
        assert "other.test" not in text


@pytest.mark.parametrize("names", [[], [dns("another.test")]])
def test_without_a_name_that_fits_there_is_the_address_alone(
    tmp_path: Path, names: list[x509.GeneralName]
) -> None:
    flags = (*certified(tmp_path, *names), "--host-suffix", "common.test")
    with Server.start(flags=flags) as server:
        text = server.output()
        assert f"https://127.0.0.1:{server.port}/{ACCOUNT}" in text
        assert "common.test" not in text
        assert f"valid for {'another.test' if names else 'no name'}" in text


def test_without_tls_no_certificate_is_asked() -> None:
    with Server.start(flags=("--host-suffix", "storage.test")) as server:
        assert f"http://{ACCOUNT}.storage.test:{server.port}\n" in server.output()


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("a.example.test", True),
        ("A.Example.Test.", True),
        ("b.a.example.test", False),
        ("example.test", False),
        ("exact.test", True),
        ("a.exact.test", False),
        ("test", False),
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("[::1]", True),
        ("0:0:0:0:0:0:0:1", True),
    ],
)
def test_which_hosts_a_certificate_is_valid_for(host: str, covered: bool) -> None:
    names = CertificateNames(("*.example.test", "exact.test"), ("127.0.0.1", "::1"))
    assert names.cover(host) is covered


def test_a_text_that_holds_no_certificate_has_no_names() -> None:
    assert read_names(b"") is None
    assert read_names(b"no certificate") is None
