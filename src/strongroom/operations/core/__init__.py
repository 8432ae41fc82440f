"""The shape of a declaration, and the declarations that all services have alike."""
