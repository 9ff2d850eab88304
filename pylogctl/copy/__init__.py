"""`pylogctl copy`: messages from topic to topic."""
