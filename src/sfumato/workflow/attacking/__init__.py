"""Attacks on releases and on published numbers, from Python, files and the command line."""
