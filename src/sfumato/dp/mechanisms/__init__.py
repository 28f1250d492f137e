"""Mechanisms: one file each, with its loss and its error known before it is run."""
