"""The source graph, and what is computed on."""
