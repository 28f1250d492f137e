"""Where rows live: memory, DuckDB, PostgreSQL, Spark. What is asked is a plan; engines alone know how it
runs."""
