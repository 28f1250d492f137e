"""Values that change places between records."""
