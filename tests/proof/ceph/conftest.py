"""The cluster and the PostgreSQL that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.postgres.conftest import administrator, postgres
from tests.proof.ceph.cluster import CephCluster
from tests.proof.ceph.pools import RealPool

__all__ = ["administrator", "postgres"]


@pytest.fixture(scope="session")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CephCluster]:
    """A cluster with the pool `bodies`, and `coded`, which is erasure-coded."""
    with CephCluster(tmp_path_factory.mktemp("ceph")) as cluster:
        cluster.make_pool("bodies")
        cluster.make_erasure_coded_pool("coded")
        cluster.wait_until_whole()
        print(f"the cluster was started in {cluster.started_s:.1f} s")
        yield cluster


@pytest.fixture
def pool(ceph: CephCluster) -> Iterator[RealPool]:
    """An empty namespace of `bodies`."""
    made = RealPool(ceph, "bodies")
    yield made
    made.close()
