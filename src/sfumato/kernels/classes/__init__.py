"""Groups of equal rows: grouping, rolling up, checking, bounding what one unit contributes."""
