"""The shared parts of all services: the call, the place, the runner, waiting."""
