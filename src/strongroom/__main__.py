"""`python -m strongroom`: the same as the command `strongroom`. It must not contain anything
else."""

from strongroom.cli import main

main()
