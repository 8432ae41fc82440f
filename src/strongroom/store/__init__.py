"""How values become keys and bytes: the keyspace map, record codecs, bodies."""
