"""SQL under differential privacy: parsed, allow-listed, lowered to a plan, measured before it is paid."""
