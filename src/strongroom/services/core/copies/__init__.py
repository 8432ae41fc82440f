"""What copies of every service share: sources, the body that a source becomes, pending copies."""
