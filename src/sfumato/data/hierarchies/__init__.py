"""Hierarchies: how they are written, begun, limited and shown."""
