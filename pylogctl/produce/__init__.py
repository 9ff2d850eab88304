"""`pylogctl produce`: messages from standard input or files to a topic."""
