"""Pure array functions: grouping, roll-ups, class checks, distances. No schema, no table, no policy."""
