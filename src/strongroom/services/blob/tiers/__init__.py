"""Access tiers: Set Blob Tier."""
