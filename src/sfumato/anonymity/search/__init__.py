"""Searches over classes: full-domain lattice, local recoding, Mondrian, clustering, top-down specialisation, cell
suppression.
"""
