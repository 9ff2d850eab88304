"""The broker process: one acceptor, N processors, and the handlers of requests."""
