"""The rules of entities, and of the filters over them."""
