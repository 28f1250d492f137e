"""Algorithms that publish one private artefact: clusters, lists, histograms."""
