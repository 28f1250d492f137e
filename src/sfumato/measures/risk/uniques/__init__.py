"""Risk by rareness: who is alone, or nearly, in the sample and in the population."""
