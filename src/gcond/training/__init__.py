"""Training: one architecture or many of one shape, on one graph, from many seeds at once."""
