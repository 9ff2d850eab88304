"""`pylogctl group`: look at, move and repair consumer groups."""
