"""What queues keep: the records of messages, and their check."""
