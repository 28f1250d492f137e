"""Measures: does it hold, how safe, how useful."""
