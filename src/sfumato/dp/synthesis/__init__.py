"""Synthetic tables by select, measure, generate on marginals."""
