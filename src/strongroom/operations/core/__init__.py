"""The structure of a declaration, and the declarations that all services share."""
