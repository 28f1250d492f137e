"""Functions that expressions of a plan may call, each with its SQL: numbers, real numbers, dates, texts."""
