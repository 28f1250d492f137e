"""The words every room shares: guarantees, outcomes, certificates, views, errors, progress, randomness."""
