"""The conditional commit inside a partition, and contents. Nothing about Azure."""
