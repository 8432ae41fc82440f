"""The promises about files, with the calls of Windows. Tried with a simulated kernel only."""
