"""`pylogctl help`, `man`, `completion` and `version`.

command.py  `pylogctl help`, `man`, `completion`, `version`, and the hidden `properties`
manual.py   finds manual pages, and lays out as text the macros that `docs.docgen`
            writes
"""
