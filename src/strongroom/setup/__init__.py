"""What `strongroom serve --setup FILE` makes before the server can be reached."""
