"""Parts of the command `backup`."""
