"""Mechanisms that choose one of several answers."""
