"""`python -m strongroom`: the same as the command `strongroom`. Must not hold anything else."""

from strongroom.cli import main

main()
