"""One module per store; each is imported only when its scheme is asked for (connect.py)."""
