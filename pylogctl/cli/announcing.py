"""Connections that announce a long wait; imported late, as this loads the client library."""

from __future__ import annotations

from typing import Any

from broker.client.connection import Connection
from broker.protocol.responses import BrokerAddress, HelloResponse
from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import announced_wait


class AnnouncedConnection(Connection):
    """A `Connection` with a note on standard error if the broker does not respond to the hello."""

    def __init__(self, env: Environment, address: BrokerAddress, **options: Any) -> None:
        super().__init__(address, **options)
        self._env = env
        self._has_waited = False

    def hello(self) -> HelloResponse | None:
        """Send a hello; announce the wait for the first response."""
        if self._has_waited:
            return super().hello()
        with announced_wait(self._env, self.name):
            found = super().hello()
        self._has_waited = True
        return found
