"""The commands that mount a share, which `strongroom serve --smb` prints for each system.

Lives here: the commands as text. Must not live here: keys; the password of an account is the text
of its key. Sources: mount.cifs(8), mount_smbfs(8), Microsoft's "net use" and New-SmbMapping, the
documentation of smbprotocol.
"""

from __future__ import annotations

_SHARE = "SHARE"


def mount_rows(host: str, port: int, account: str) -> list[tuple[str, str]]:
    """Each a label and a command. `host` is how a client on this machine reaches the server."""
    bracketed = f"[{host}]" if ":" in host else host
    options = f"vers=3.1.1,port={port},seal,username={account},password=KEY,serverino"
    return [
        ("file shares, SMB", f"{bracketed} port {port}; the password is the account's key (KEY)"),
        ("  smbclient", f"smbclient //{host}/{_SHARE} -p {port} -m SMB3 -U {account}%KEY"),
        ("  Linux", f"mount -t cifs //{host}/{_SHARE} /mnt -o {options}"),
        (
            "  Windows 11",
            rf"net use * \\{host}\{_SHARE} /user:{account} KEY /tcpport:{port}"
            " (24H2 and later)",
        ),
        ("  macOS", f"mount_smbfs //{account}@{bracketed}:{port}/{_SHARE} ~/mnt"),
        (
            "  Python",
            f'smbclient.register_session("{host}", username="{account}", password=KEY, '
            f"port={port}) of smbprotocol",
        ),
    ]
