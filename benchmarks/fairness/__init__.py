"""How long one request can delay the others: the kinds of long work, and their measurement."""
