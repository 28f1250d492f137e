"""Accounting: how losses add up, convert and are chosen."""
