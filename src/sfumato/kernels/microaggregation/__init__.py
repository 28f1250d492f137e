"""Clusters of at least k similar records."""
