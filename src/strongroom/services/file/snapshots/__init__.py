"""What a commit keeps for the snapshots of a share, and what no snapshot sees any more."""
