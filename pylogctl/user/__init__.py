"""`pylogctl user`: who can log in at brokers.

changes.py   adds, changes and removes users, and shows and sets their quotas
command.py   `pylogctl user`: the options of its commands
options.py   the options that the work of commands gets as one value
"""
