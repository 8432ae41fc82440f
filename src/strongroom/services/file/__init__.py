"""Decisions on shares and on the files and directories in them.

From the top down; a folder uses those below it:

| folder | what lives there |
| --- | --- |
| `copies/` | Copy File, Put Range from URL, and files as the sources of copies |
| `rest/` | REST's operations on files and directories, by their paths |
| `shares/` | shares, and the taking and deleting of their snapshots |
| `handles/` | SMB's operations, by handles |
| `node/` | one file or directory, by path or handle: access, decision, bytes, moves, creations |
| `names/` | paths, permissions and SMB properties |
| `snapshots/` | what is kept for snapshots, and what no snapshot sees any more |
| `opens/` | the tables of opens |
"""
