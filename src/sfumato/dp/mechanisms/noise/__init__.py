"""Mechanisms that add noise to a number, and the laws of that noise."""
