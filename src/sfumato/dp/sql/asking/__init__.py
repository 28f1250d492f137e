"""A question or a batch of them: what it costs, whether it was asked before, what it is charged, and its answer."""
