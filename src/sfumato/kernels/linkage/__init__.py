"""Which record of one file belongs to which of another."""
