"""Shared by the decisions of all services: the call, the place, the runner, waiting."""
