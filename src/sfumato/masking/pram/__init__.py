"""PRAM: categories changed at random, by a matrix of probabilities."""
