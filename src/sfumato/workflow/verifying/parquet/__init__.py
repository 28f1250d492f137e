"""Every byte of a foreign Parquet file, accounted for."""
