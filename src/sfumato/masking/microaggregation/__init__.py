"""Clusters of at least k similar records, shown by their centroids or drawn anew."""
