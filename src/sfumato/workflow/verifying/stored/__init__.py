"""Releases whose rows are in several files or in a table."""
