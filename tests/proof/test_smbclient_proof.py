"""Samba's smbclient puts and gets 1 GiB byte for byte, signed and encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.test_smb_clients import PROTECTIONS, copy_there_and_back, mounted_share

SIZE_MIB = 1024
PATIENCE_S = 1200.0


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_one_gibibyte_there_and_back(tmp_path: Path, protection: str) -> None:
    for share in mounted_share(tmp_path, "--smb-encryption", "offered"):
        copy_there_and_back(share, SIZE_MIB, PROTECTIONS[protection], PATIENCE_S)
