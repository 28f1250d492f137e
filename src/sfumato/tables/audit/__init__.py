"""Audit: what a table with blanks still says about each of them. It shares no model with what chose the blanks."""
