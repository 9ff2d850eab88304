"""The broker process: one acceptor, N processors, and what they do with requests."""
