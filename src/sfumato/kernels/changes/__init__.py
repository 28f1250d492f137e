"""How masks change values: swapped ranks, transitions, and the channel that they make."""
