"""Attacks on several releases about the same people: what they leave together."""
