"""Measurements of load: what is sent or read, how it is timed, shown and reported."""
