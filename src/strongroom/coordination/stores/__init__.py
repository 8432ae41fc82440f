"""One module per store; each is imported only when its scheme is opened (connect.py)."""
