"""The memory engine: all contracts over dicts, for tests and for one process without a disk."""

from strongroom.engines.memory.store import MemoryEngine

__all__ = ["MemoryEngine"]
