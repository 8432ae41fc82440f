"""Names of SIDs and SIDs of names over lsarpc, as Samba's rpcclient asks for them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.ports import HOST
from tests.interop.test_smb_clients import PATIENCE_S, Mounted, mounted_share
from tests.interop.tools import require_tool

ACCOUNT_SID = "S-1-5-21-0-0-0-500"


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    yield from mounted_share(tmp_path_factory.mktemp("names"))


def ran(mounted: Mounted, tool: str, *arguments: str) -> str:
    """Return the output of a tool of Samba, logged on as the account."""
    login = mounted.folder / "login"
    login.write_text(f"username={DEVELOPMENT_ACCOUNT_NAME}\npassword={DEVELOPMENT_ACCOUNT_KEY}\n")
    done = subprocess.run(
        [require_tool(tool), *arguments, "-p", str(mounted.port), "-A", str(login)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("lsaquery", "Domain Name: WORKGROUP"),
        ("lsaquery 5", "Domain Name: STRONGROOM\nDomain Sid: S-1-5-21-0-0-0"),
        ("lookupsids S-1-5-32-544", r"S-1-5-32-544 BUILTIN\Administrators (4)"),
        ("lookupsids S-1-1-0 S-1-5-18", r"S-1-5-18 NT AUTHORITY\SYSTEM (5)"),
        (f"lookupsids {ACCOUNT_SID}", rf"{ACCOUNT_SID} STRONGROOM\{DEVELOPMENT_ACCOUNT_NAME} (1)"),
        ("lookupsids S-1-5-21-1-2-3-4 S-1-1-0", "S-1-5-21-1-2-3-4 *unknown*\\*unknown* (8)"),
        ("lookupnames administrators", "administrators S-1-5-32-544 (Local Group: 4)"),
        (f"lookupnames {DEVELOPMENT_ACCOUNT_NAME}", f"{ACCOUNT_SID} (User: 1)"),
        ("lookupnames nobody", "NT_STATUS_NONE_MAPPED"),
        ("lookupnames4 system", "system S-1-5-18 (Well-known Group: 5)"),
        ("getusername", f"Account Name: {DEVELOPMENT_ACCOUNT_NAME}, Authority Name: STRONGROOM"),
    ],
)
def test_rpcclient_finds_names_and_sids(mounted: Mounted, command: str, expected: str) -> None:
    assert expected in ran(mounted, "rpcclient", HOST, "-c", command)
