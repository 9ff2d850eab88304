"""`pylogctl mirror`: mirror topics into another cluster."""
