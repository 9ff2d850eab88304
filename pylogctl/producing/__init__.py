"""From input to message sets in brokers: what `pylogctl produce` does, without its options."""
