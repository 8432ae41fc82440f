"""Operations of a single type of blob: blocks, appends and pages.

Must not live here: operations that all types share.
"""
