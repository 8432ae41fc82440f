"""Decisions on shares and on the files and directories in them."""
