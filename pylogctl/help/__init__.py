"""`pylogctl help`, `man`, `completion` and `version`."""
