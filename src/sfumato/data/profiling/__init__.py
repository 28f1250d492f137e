"""What a table seems to be: a profile, and a schema to start from."""
