"""Noise on numbers, added or multiplied."""
