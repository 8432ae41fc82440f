"""Operations that only one type of blob has, with a module for each type. Those of block blobs are
in services/blob/blocks.py. Must not live here: operations that all types share."""
