"""`pylogctl acl`: rules of who may do what.

command.py   `pylogctl acl`: the options of its commands
document.py  the rows of `pylogctl acl`, and the documents that show them
work.py      changes rules, shows them, and explains decisions
"""
