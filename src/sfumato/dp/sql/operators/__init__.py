"""The language of queries: its operators, functions, aggregates and windows, one row each."""
