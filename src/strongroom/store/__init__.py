"""The mapping of values to keys and bytes: the keyspace map, record codecs, bodies."""
