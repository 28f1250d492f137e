"""Reading a table from files and frames."""
