"""Risk by linkage: how many people an intruder finds again in the released records."""
