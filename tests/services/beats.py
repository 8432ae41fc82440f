"""How often all gateways of a store send heartbeats until none tells that it reads anything old.

Must not live here: the rules of heartbeats (src/strongroom/engines/membership.py).
"""

from __future__ import annotations

from typing import Final

ROUNDS: Final = 3
"""First the promises rise. Then each gateway sees how far. Then it tells so to the others."""
