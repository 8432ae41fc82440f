"""The recipes: each is steps (no IO), and two thin faces over them, for threads and asyncio."""
