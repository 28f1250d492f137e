"""Digests and keyed names of rows, computed by the engine that holds them."""
