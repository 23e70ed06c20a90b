"""One runner for all work that is many jobs."""
