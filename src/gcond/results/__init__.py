"""What was measured: one type for each fact, with load and save."""
