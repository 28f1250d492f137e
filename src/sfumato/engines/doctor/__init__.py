"""What an engine can do here, before anything is asked of it."""
