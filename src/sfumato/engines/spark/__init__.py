"""Rows in Spark."""
