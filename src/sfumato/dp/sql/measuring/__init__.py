"""What is measured of those rows, with which noise, and by which query."""
