"""`pylogctl audit`: compare message counts along a pipeline."""
