"""`pylogctl log`: dump, verify and recover segment files."""
