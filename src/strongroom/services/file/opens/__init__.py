"""The table of opens, the handles in it, and all else that a process keeps of open files."""
