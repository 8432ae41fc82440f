"""Spans of requests and commits, for OpenTelemetry. Only a server with --otel imports this package.

It needs the extra `otel`: the API is used everywhere, the SDK only in set_up.py.
"""
