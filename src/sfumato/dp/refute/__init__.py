"""Verify and refute claims of differential privacy: exactly where the law is known, statistically where it is not."""
