"""Kinds of content that leave the house: rows about people, results of a private method."""
