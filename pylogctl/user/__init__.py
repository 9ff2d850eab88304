"""`pylogctl user`: who can log in at brokers."""
