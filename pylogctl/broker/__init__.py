"""`pylogctl broker`: start, stop and look at brokers."""
