"""Products with sparse matrices and their derivatives, and the optimiser."""
