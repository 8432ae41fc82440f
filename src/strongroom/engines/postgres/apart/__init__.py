"""Bodies apart from the database: where they lie, who may remove any, and when."""
