"""Tools for segment files that no broker has open.

`segments` finds the files, `inspect` and `verify` read them, `rewrite` makes new ones of them. Only
`inspect.recover` changes one.
"""
