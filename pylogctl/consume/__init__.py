"""`pylogctl consume`: messages of topics to standard output."""
