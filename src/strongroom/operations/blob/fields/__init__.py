"""What the declarations of the blob service share: the fields that are read and returned."""
