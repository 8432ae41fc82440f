"""Who is calling, and may they: signatures, shared access signatures, public access. No storage."""
