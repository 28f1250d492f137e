"""Sensitivities as objects: by formula for the catalogue of queries, by brute force on small finite domains."""
