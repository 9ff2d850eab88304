"""Measurements of load: messages sent or read, their times, and reports."""
