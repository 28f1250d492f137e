"""Random draws, exact where a guarantee rests on them."""
