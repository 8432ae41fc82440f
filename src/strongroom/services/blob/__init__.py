"""Decisions on containers and blobs: writes, reads, leases, copies, lists, sweeps."""
