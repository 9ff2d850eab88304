"""`pylogctl topic`: list, describe, create, delete, count and sample topics."""
