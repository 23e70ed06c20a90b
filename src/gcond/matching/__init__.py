"""What the methods that learn by matching gradients share, one idea a file."""
