"""`pylogctl doctor`: check that everything needed is in place."""
