"""How far a shown number may be off, before and after the noise is drawn."""
