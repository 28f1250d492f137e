"""Peers as oracles: the same tables measured by somebody else."""
