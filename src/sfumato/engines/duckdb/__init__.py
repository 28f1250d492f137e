"""Rows in DuckDB: database files, and Parquet and CSV files read where they lie."""
