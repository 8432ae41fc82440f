"""The path of an HTTP request: admitted, decided by its operation, and answered; batches too.

Must not live here: the bytes of HTTP (http/).
"""
