"""The server that the tests of this folder share, as those of tests/engines/postgres do."""

from __future__ import annotations

from tests.engines.postgres.conftest import administrator, postgres

__all__ = ["administrator", "postgres"]
