"""Tables that are changed instead of blanked: rounding, controlled adjustment, cell keys, noise."""
