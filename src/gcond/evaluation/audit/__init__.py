"""What a person should know before publishing a condensed graph, or relying on it."""
