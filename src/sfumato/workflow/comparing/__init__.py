"""Methods and parameters side by side on one table."""
