"""How values are written as texts, and what such texts are values of."""
