"""The condensed graph, how it came to be, and its file."""
