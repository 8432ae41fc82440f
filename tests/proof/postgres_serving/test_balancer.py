"""nginx in front of two gateways, with the lines of the manual's page: a clean stop costs no client
an error."""

from __future__ import annotations

import time
from pathlib import Path

from azure.storage.blob import BlobServiceClient

from strongroom.testing.ports import HOST, free_port
from tests.cli.test_serve_store import server_over, waiting_for
from tests.interop.proxies import _AROUND_NGINX, _readable, _running
from tests.interop.tools import require_tool
from tests.over_postgres import new_store
from tests.pages.blocks import ROOT, blocks

_PAGE = ROOT / "docs" / "operators" / "postgresql.md"
_SITE = """
{upstream}
server {{
    listen 127.0.0.1:{port};
    client_max_body_size 0;
    location / {{
        proxy_pass http://strongroom;
        proxy_set_header Host $http_host;
        proxy_set_header Connection "";
        proxy_http_version 1.1;
        proxy_request_buffering off;
        proxy_buffering off;
{lines}
    }}
}}
"""


def site(port: int, first: int, second: int) -> str:
    """Return nginx's file, with what the page says of the two gateways."""
    page = blocks(_PAGE.read_text(encoding="utf-8"))
    upstream, lines = (one.code for one in page if one.language == "nginx")
    for name, gateway in (("db1", first), ("db2", second)):
        assert f"{name}.example.net:8443" in upstream
        upstream = upstream.replace(f"{name}.example.net:8443", f"{HOST}:{gateway}")
    return _SITE.format(upstream=upstream, port=port, lines=lines)


def test_a_clean_stop_costs_no_client_an_error(tmp_path: Path) -> None:
    nginx = require_tool("nginx")
    store, port, second = new_store(), free_port(), free_port()
    with (
        server_over(store, tmp_path / "first") as serving,
        waiting_for(store, tmp_path / "second", "--blob-port", str(second)),
    ):
        file = tmp_path / "nginx.conf"
        around = _AROUND_NGINX.format(folder=tmp_path, site=site(port, serving.port, second))
        file.write_text(around, encoding="utf-8")
        _readable(tmp_path)
        command = [nginx, "-c", str(file), "-e", str(tmp_path / "nginx.log")]
        with _running(command, tmp_path, port):
            string = serving.connection_string.replace(serving.url, f"http://{HOST}:{port}")
            wiki = BlobServiceClient.from_connection_string(string).create_container("wiki")
            for number in range(20):
                wiki.upload_blob(f"page{number}", b"before")
            began_s = time.monotonic()
            serving.stop()
            for number in range(20, 40):
                wiki.upload_blob(f"page{number}", b"after")
            print(f"stop and 20 writes: {time.monotonic() - began_s:.1f} s")
            assert len([*wiki.list_blob_names()]) == 40
