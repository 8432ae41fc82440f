"""What QUERY_INFO, SET_INFO and QUERY_DIRECTORY carry: information classes and descriptors."""
