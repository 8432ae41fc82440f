"""What a declaration is, and what all services declare alike."""
