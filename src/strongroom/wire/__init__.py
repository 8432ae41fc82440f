"""Bytes <-> values: headers, queries, XML bodies. No IO, no storage, no policy."""
