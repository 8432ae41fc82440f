"""Redis as a store of coordination, and what its promises are worth."""
