"""Less detail: broader values, rounded numbers, bounds, a part of the records."""
