"""The rows of `pylogctl user`, and the document that shows them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import Document, Fit, Integer, Row, Text


class UserRow(Row):
    """A user of the cluster."""

    user: Annotated[Text, "name"]
    mechanism: Annotated[Text, "how the password is proved; missing for one without", Fit.WHOLE]
    iterations: Annotated[Integer, "rounds of PBKDF2 that a guess of the password costs"]
    settings: Annotated[Text, "names of what else is set for the user", Fit.WRAP]


USERS = Document("user.list/1", UserRow, empty="no users; try: pylogctl user add NAME")
