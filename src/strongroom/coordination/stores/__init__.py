"""One module or folder per store. It is imported only when its scheme is opened (connect.py)."""
