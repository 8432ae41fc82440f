"""Operations that only one type of blob has, a module for each type. Block blobs are older than
this folder (services/blob/blocks.py). Must not live here: what all types share."""
