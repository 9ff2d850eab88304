"""`pylogctl metrics`: metrics topics into another cluster."""
