"""Shared by several stores: pools of connections, listening for changes, pauses."""
