"""The gateways of a store, for servers. They know engines by this module alone.

Must not live here: the contract (engines/gateways.py).
"""

from __future__ import annotations

from strongroom.engines.gateways import GatewayRun as GatewayRun
from strongroom.engines.gateways import Gateways as Gateways
