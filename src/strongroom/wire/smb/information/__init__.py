"""The payloads of QUERY_INFO, SET_INFO and QUERY_DIRECTORY: information classes and descriptors."""
