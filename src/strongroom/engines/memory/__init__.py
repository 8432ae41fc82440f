"""The memory engine: all contracts over dicts, for tests and for one process without a disk."""

from strongroom.engines.memory.store import MemoryStore

__all__ = ["MemoryStore"]
