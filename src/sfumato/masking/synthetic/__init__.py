"""Records, or columns of them, drawn from a model."""
