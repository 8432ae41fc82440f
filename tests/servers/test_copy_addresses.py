"""The hosts and addresses that are allowed as copy sources: rule B-CPY-14."""

from __future__ import annotations

import pytest

from strongroom.servers.copies.addresses import SourceHosts, is_address_allowed

PUBLIC = "93.184.216.34"

# address, allowed by default, allowed if the operator named its host
ADDRESSES = [
    (PUBLIC, True, True),
    ("2606:2800:220:1::1", True, True),
    ("10.1.2.3", False, True),
    ("172.16.0.1", False, True),
    ("172.31.255.255", False, True),
    ("172.32.0.1", True, True),
    ("192.168.0.1", False, True),
    ("100.64.1.1", False, True),
    ("127.0.0.1", False, True),
    ("127.8.8.8", False, True),
    ("::1", False, True),
    ("fc00::1", False, True),
    ("fd12::1", False, True),
    ("fec0::1", False, True),
    ("0.0.0.0", False, True),
    ("::", False, True),
    ("169.254.169.254", False, False),
    ("169.254.1.1", False, False),
    ("fe80::1", False, False),
    ("fe80::1%lo", False, False),
    ("fd12::1%eth0", False, False),
    ("168.63.129.16", False, False),
    ("100.100.100.200", False, False),
    ("192.0.0.192", False, False),
    ("fd00:ec2::254", False, False),
    ("fd20:ce::254", False, False),
    ("224.0.0.1", False, False),
    ("239.255.255.255", False, False),
    ("255.255.255.255", False, False),
    ("ff02::1", False, False),
    ("::ffff:169.254.169.254", False, False),
    ("::ffff:100.100.100.200", False, False),
    ("::ffff:255.255.255.255", False, False),
    ("::ffff:10.0.0.1", False, True),
    ("::ffff:127.0.0.1", False, True),
    (f"::ffff:{PUBLIC}", True, True),
    ("::169.254.169.254", False, False),
    ("::10.0.0.1", False, True),
    ("64:ff9b::a9fe:a9fe", False, False),
    ("64:ff9b::a00:1", False, True),
    ("64:ff9b::5db8:d822", True, True),
    ("64:ff9b:1::5db8:d822", False, False),
    ("2002:a9fe:a9fe::1", False, False),
    ("2002:a00:1::1", False, True),
    ("2001:0:a9fe:a9fe::1", False, False),
    ("no address", False, False),
    ("", False, False),
]


@pytest.mark.parametrize(("address", "by_default", "when_listed"), ADDRESSES)
def test_addresses(address: str, by_default: bool, when_listed: bool) -> None:
    """B-CPY-14."""
    assert is_address_allowed(address, False) is by_default
    assert is_address_allowed(address, True) is when_listed


# listed hosts, host, port, its address, allowed
HOSTS = [
    ("", "x.example", 80, PUBLIC, True),
    ("", "x.example", 80, "10.0.0.1", False),
    ("", "127.1", 80, "127.0.0.1", False),
    ("x.example", "x.example", 80, "10.0.0.1", True),
    ("X.Example.", "x.example", 80, "10.0.0.1", True),
    ("x.example", "x.example.", 80, "10.0.0.1", True),
    ("x.example", "x.example", 80, PUBLIC, True),
    ("x.example", "x.example", 80, "169.254.169.254", False),
    ("x.example", "y.example", 80, PUBLIC, False),
    ("x.example", "y.x.example", 80, PUBLIC, False),
    ("x.example", PUBLIC, 80, PUBLIC, False),
    ("x.example y.example", "y.example", 80, "10.0.0.1", True),
    ("x.example:8080", "x.example", 8080, "10.0.0.1", True),
    ("x.example:8080", "x.example", 80, PUBLIC, False),
    ("*.example", "x.example", 80, "10.0.0.1", True),
    ("*.example", "y.x.example", 80, "10.0.0.1", True),
    ("*.example", "example", 80, PUBLIC, False),
    ("*.example", ".example", 80, PUBLIC, False),
    ("*.example", "xexample", 80, PUBLIC, False),
    ("*.example", "example.other", 80, PUBLIC, False),
    ("*.example:81", "x.example", 80, PUBLIC, False),
    ("127.0.0.1", "127.0.0.1", 80, "127.0.0.1", True),
    ("127.0.0.1", "127.1", 80, "127.0.0.1", True),
    ("127.0.0.1", "0x7f000001", 80, "127.0.0.1", True),
    ("127.0.0.1", "2130706433", 80, "127.0.0.1", True),
    ("127.0.0.1", "0177.0.0.1", 80, "127.0.0.1", True),
    ("127.0.0.1", "127.0.0.2", 80, "127.0.0.2", False),
    ("127.0.0.1", "localhost", 80, "127.0.0.1", False),
    ("127.0.0.1:81", "127.1", 80, "127.0.0.1", False),
    ("::1", "::1", 80, "::1", True),
    ("[::1]", "0:0::1", 80, "::1", True),
    ("[::1]:81", "::1", 81, "::1", True),
    ("[::1]:81", "::1", 80, "::1", False),
    ("169.254.169.254", "169.254.169.254", 80, "169.254.169.254", False),
    ("169.254.169.254", "2852039166", 80, "169.254.169.254", False),
]


@pytest.mark.parametrize(("listed", "host", "port", "address", "asked"), HOSTS)
def test_hosts(listed: str, host: str, port: int, address: str, asked: bool) -> None:
    """B-CPY-14."""
    hosts = SourceHosts.parse(listed.split())
    assert (hosts.may_resolve(host, port) and hosts.allows_address(host, port, address)) is asked


@pytest.mark.parametrize(
    "name",
    ["metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data"],
)
def test_names_of_metadata_servers(name: str) -> None:
    """B-CPY-14: such names are never resolved, listed or not."""
    for listed in ([], [name], ["*.google.internal"]):
        assert not SourceHosts.parse(listed).may_resolve(name, 80)


def test_a_name_that_is_not_listed_is_not_looked_up() -> None:
    hosts = SourceHosts.parse(["x.example:81", "10.0.0.1"])
    assert hosts.may_resolve("x.example", 81)
    assert not hosts.may_resolve("x.example", 80)
    assert not hosts.may_resolve("y.example", 81)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a b", "http://x", "x/y", "user@x", "x:", "x:0", "x:65536", "x:y"),
        *("*", "*.", "*x.example", "x.*", "[::1", "[x]", "[1:2]", "::1%lo", "fe80::1%eth0"),
    ],
)
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match="no host for copies"):
        SourceHosts.parse([text])
