"""Kinds of values that have a tree of their own: codes of classifications, countries, postcodes, telephone numbers, dates, ages.

One kind is one file; `listing.KINDS` has them all.
"""
