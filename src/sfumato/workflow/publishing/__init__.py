"""From a submission to a saved release: written, read back, checked, scored, certified, signed."""
