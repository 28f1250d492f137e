"""Checking a folder that somebody else wrote: nothing in it is believed."""
