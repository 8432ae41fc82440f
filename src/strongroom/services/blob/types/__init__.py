"""Operations of a single type of blob, with a module for each type.

The operations of block blobs are in services/blob/blocks.py. Must not live here: operations that
all types share.
"""
