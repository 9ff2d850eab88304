"""`pylogctl context`: clusters by name."""
