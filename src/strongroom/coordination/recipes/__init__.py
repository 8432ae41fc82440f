"""The recipes: each is a core of steps without IO, and thin classes for threads and for asyncio."""
