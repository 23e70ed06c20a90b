"""Search for hyper-parameters."""
