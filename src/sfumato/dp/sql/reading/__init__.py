"""From a syntax tree to rows that each belong to one unit, and the keys that they are grouped by."""
