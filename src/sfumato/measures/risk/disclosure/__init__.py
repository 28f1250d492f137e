"""Risk by what is learnt: values, intervals, models."""
