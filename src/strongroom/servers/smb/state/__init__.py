"""What a connection knows between messages: sessions, pending requests, message ids, settings."""
