"""Operations of a single type of blob: blocks, appends and pages."""
