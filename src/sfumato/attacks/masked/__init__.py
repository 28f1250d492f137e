"""Attacks on masked records: which of them is whose, knowing how they were masked."""
