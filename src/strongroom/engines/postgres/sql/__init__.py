"""The tables, functions and statements of a store, and the form of addresses in them."""
