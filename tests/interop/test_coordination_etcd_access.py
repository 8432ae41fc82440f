"""Access to an etcd: users, passwords, TLS, and the URLs for them."""

from __future__ import annotations

import datetime
import ipaddress
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from strongroom import coordination as coord
from strongroom.coordination.effects import UNCHANGED, Applied, Conflict, Entry
from strongroom.coordination.stores.etcd.address import address_of
from strongroom.testing.ports import HOST, free_port
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, fresh_key
from tests.coordination.servers import EtcdCluster, RealServer, etcd_cluster, program
from tests.interop.etcd_users import CHEAP, ESCAPED, PASSWORD, TIMID, with_users


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("users"), 1, *CHEAP) as running:
        with_users(running)
        yield running


@pytest.fixture
def url(cluster: EtcdCluster) -> str:
    return f"etcd://app:{ESCAPED}@{cluster.addresses}"


@pytest.mark.parametrize("case", CASES)
def test_contract_of_a_user(url: str, case: str) -> None:
    store = coord.open_store(url)
    CASES[case](store)
    store.close()


def test_a_wrong_password_is_refused_and_not_quoted(
    cluster: EtcdCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = coord.open_store(f"etcd://app:wr0ng%2Fword@{cluster.addresses}")
    with pytest.raises(coord.StoreRefused, match="refuses user and password") as refusal:
        store.get("lock/x", TIMEOUT_S)
    with pytest.raises(coord.StoreRefused):
        store.cas("lock/x", None, b"", TIMEOUT_S)
    with pytest.raises(coord.StoreRefused):
        store.watch("lock/x", "1", TIMEOUT_S)
    store.close()
    for text in (str(refusal.value), repr(refusal.value.__cause__), caplog.text, repr(store)):
        assert "wr0ng" not in text


def test_nobody_in_particular_is_told_what_to_write(cluster: EtcdCluster) -> None:
    store = coord.open_store(f"etcd://{cluster.addresses}")
    for ask in (
        lambda: store.get("lock/x", TIMEOUT_S),
        lambda: store.cas("lock/x", None, b"", TIMEOUT_S),
    ):
        with pytest.raises(coord.StoreRefused, match="etcd://USER:PASSWORD@HOST"):
            ask()
    store.close()


def test_a_user_without_rights_is_refused(cluster: EtcdCluster) -> None:
    store = coord.open_store(f"etcd://{TIMID[0]}:{TIMID[1]}@{cluster.addresses}")
    with pytest.raises(coord.StoreRefused, match="permission denied"):
        store.get("lock/x", TIMEOUT_S)
    with pytest.raises(coord.StoreRefused, match="permission denied"):
        store.cas("lock/x", None, b"", TIMEOUT_S)
    with pytest.raises(coord.StoreRefused):
        store.watch("lock/x", "1", TIMEOUT_S)
    store.close()


def test_a_cluster_without_users_says_so(tmp_path: Path) -> None:
    with etcd_cluster(tmp_path) as plain:
        store = coord.open_store(f"etcd://app:{ESCAPED}@{plain.addresses}")
        with pytest.raises(coord.StoreRefused, match="authentication is not enabled"):
            store.get("lock/x", TIMEOUT_S)
        store.close()


def test_a_token_that_was_forgotten_is_asked_for_again(url: str, cluster: EtcdCluster) -> None:
    """A restarted member knows no tokens; nothing was done by then, so that nothing is unsure."""
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    cluster.kill(0)
    cluster.restart(0)
    version = applied(store.cas(key, version, b"two", TIMEOUT_S))
    cluster.kill(0)
    cluster.restart(0)
    assert store.watch(key, version, 0.5) is UNCHANGED
    cluster.kill(0)
    cluster.restart(0)
    seen = store.watch(key, "1", TIMEOUT_S)
    assert isinstance(seen, Entry) and seen.version == version
    store.close()


def test_rights_that_change_leave_nothing_unsure(url: str, cluster: EtcdCluster) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    token = cluster.call("/v3/auth/authenticate", {"name": "root", "password": "toor"})["token"]
    cluster.call("/v3/auth/role/add", {"name": f"role-{key[-8:]}"}, token)
    assert isinstance(store.cas(key, version, b"two", TIMEOUT_S), Applied)
    assert isinstance(store.cas(key, version, b"three", TIMEOUT_S), Conflict)
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "etcd://",
        "etcd:///prefix",
        "etcd://app:pa/ss@host:2379",
        "etcd://app:pass@host:2379,",
        "etcd://app:pass@host:0",
        "etcd://app:pass@host:65536",
        "etcd://app:pass@ho st",
        "etcd://app:pass@host:2379?retries=3",
        "etcd://app:pass@host:2379?tls=yes",
        "etcd://app:pass@host:2379?key=/nowhere",
        "etcd://app:pass@host:2379?ca=/nowhere",
    ],
)
def test_a_bad_url_is_named_without_its_password(url: str) -> None:
    with pytest.raises(coord.Unsupported) as refusal:
        coord.open_store(url)
    assert "pass" not in str(refusal.value).replace("PASSWORD", "").replace("password", "")
    assert "pa/ss" not in str(refusal.value)


def test_what_urls_mean() -> None:
    plain = address_of("etcd://one,two:1,[::1]:2", {})
    assert plain.members == ("http://one:2379", "http://two:1", "http://[::1]:2")
    assert (plain.prefix, plain.user, plain.password) == ("strongroom", "", "")
    named = address_of(f"etcd://app:{ESCAPED}@one/a/b%20c/", {"tls": "1"})
    assert (named.members, named.prefix) == (("https://one:2379",), "a/b c")
    assert (named.user, named.password) == ("app", PASSWORD)
    assert PASSWORD not in repr(named)


def made_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "certificate.pem", folder / "key.pem"
    certificate_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_path, key_path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    """An etcd that wants its clients' certificates; its address, a certificate, its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = made_certificate(folder)
    port, peer = free_port(), f"http://{HOST}:{free_port()}"
    client = f"https://{HOST}:{port}"
    command = [program("etcd", "etcd-server"), "--data-dir", str(folder / "data")]
    command += ["--listen-client-urls", client, "--advertise-client-urls", client]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    command += ["--initial-cluster", f"default={peer}", "--client-cert-auth"]
    command += ["--cert-file", str(certificate), "--key-file", str(key)]
    command += ["--trusted-ca-file", str(certificate)]
    server = RealServer(command, port, folder / "etcd.log")
    server.wait(server.listens)
    yield server.address, certificate, key
    server.stop()


@pytest.mark.parametrize("case", ["update_needs_the_version", "watch_sees_changes"])
def test_contract_over_tls(secure: tuple[str, Path, Path], case: str) -> None:
    address, certificate, key = secure
    store = coord.open_store(f"etcd://{address}?ca={certificate}&cert={certificate}&key={key}")
    CASES[case](store)
    store.close()


def test_a_client_without_a_certificate_waits_for_nothing(
    secure: tuple[str, Path, Path],
) -> None:
    address, certificate, _ = secure
    with coord.connect(f"etcd://{address}?ca={certificate}") as client:
        for _ in range(5):
            with pytest.raises(coord.StoreRefused, match="requires a client certificate"):
                client.lock("x", ttl=2).acquire()
            with pytest.raises(coord.StoreRefused, match="requires a client certificate"):
                client.store.watch("lock/x", "1", TIMEOUT_S)


def test_a_server_that_nobody_vouches_for_is_refused(secure: tuple[str, Path, Path]) -> None:
    store = coord.open_store(f"etcd://{secure[0]}?tls=1")
    with pytest.raises(coord.StoreRefused, match="certificate"):
        store.get("lock/x", TIMEOUT_S)
    store.close()
