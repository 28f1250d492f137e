"""A table about people, to be published row by row: class checks on codes, searches, pseudonyms."""
