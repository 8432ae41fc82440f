"""TLS certificates: loaded, made for local use, and the names in them."""
