"""Attacks on aggregate tables: what a count beside a sum, a contributor or a second table says about a single one."""
