"""How fast the house is: `python -m benchmarks.run` (make bench) and `python -m benchmarks.peers` (make bench-peers)."""
