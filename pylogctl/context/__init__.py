"""`pylogctl context`: clusters by name.

command.py   `pylogctl context`: the options of its commands
document.py  the rows of `pylogctl context`, and the document that shows them
"""
