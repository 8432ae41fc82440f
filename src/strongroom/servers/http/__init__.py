"""The HTTP server: connections, heads, bodies, answers and their pacing; no rule of any service."""
