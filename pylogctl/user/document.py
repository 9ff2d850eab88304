"""The rows of `pylogctl user`, and the document that shows them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import Bytes, Document, Fit, Integer, Row, Text


class UserRow(Row):
    """A user of the cluster."""

    user: Annotated[Text, "name"]
    mechanism: Annotated[Text, "how the password is proved; missing for one without", Fit.WHOLE]
    iterations: Annotated[Integer, "rounds of PBKDF2 that a guess of the password costs"]
    settings: Annotated[Text, "names of what else is set for the user", Fit.WRAP]


class QuotaRow(Row):
    """What a user may use of each broker."""

    user: Annotated[Text, "name; <default> stands for users without quotas of their own"]
    bytes_in: Annotated[Bytes, "most bytes a second from the user; 0: no limit"]
    bytes_out: Annotated[Bytes, "most bytes a second to the user; 0: no limit"]
    work: Annotated[Integer, "most work for the user, percent of one thread's time; 0: no limit"]
    connections: Annotated[Integer, "most connections of the user, once logged in; 0: no limit"]


QUOTAS = Document("user.quotas/1", QuotaRow, empty="no user has quotas of its own")
USERS = Document("user.list/1", UserRow, empty="no users; try: pylogctl user add NAME")
