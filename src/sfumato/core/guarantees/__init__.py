"""Guarantees as frozen values: what is promised, against whom, and how to tell whether a measured number keeps the
promise.
"""
