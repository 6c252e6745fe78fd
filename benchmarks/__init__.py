"""ranklake against other ways to the same numbers: speed, memory, and how both grow."""
