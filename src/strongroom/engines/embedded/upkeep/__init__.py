"""What an operator has done again and again: backups that build on earlier ones, and their end."""
