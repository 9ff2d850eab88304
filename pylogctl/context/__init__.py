"""`pylogctl context`: clusters by name.

command.py  `pylogctl context`: its commands, and the row that shows a context
"""
