"""Attacks on one published table: what its classes give away."""
