"""`pylogctl doctor`: check that everything needed is in place.

checks.py   the checks of `pylogctl doctor`; none of them raises
command.py  `pylogctl doctor`: check that everything needed is in place
"""
