"""Attacks on what was computed from records: counts, sums, noisy answers, models, recommendations."""
