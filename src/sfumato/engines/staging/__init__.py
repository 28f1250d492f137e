"""Released rows written by the engine that holds the original, and published in one step."""
