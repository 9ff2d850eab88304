"""Connections that announce a long wait; imported late, as this loads the client library."""

from __future__ import annotations

import time
from typing import Any

from broker import deadlines
from broker.client.cluster import BRIEFLY_S
from broker.client.connection import Connection
from broker.errors import RequestTimeoutError
from broker.protocol.responses import BrokerAddress, HelloResponse
from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import Silence, announced_wait


class AnnouncedConnection(Connection):
    """A `Connection` with a note on standard error if the broker does not respond to the hello.

    Connections with the same `silence` wait for as long together, and then briefly.
    """

    def __init__(
        self, env: Environment, address: BrokerAddress, silence: Silence | None, **options: Any
    ) -> None:
        super().__init__(address, **options)
        self._env = env
        self._silence = silence
        self._has_waited = False

    def hello(self) -> HelloResponse | None:
        """Send a hello; announce the wait for the first response."""
        if self._has_waited:
            return super().hello()
        silence, started_s = self._silence, time.monotonic()
        limit_s = None if silence is None else max(silence.left_s, BRIEFLY_S)
        try:
            with announced_wait(self._env, self.name), deadlines.Limit(limit_s):
                found = super().hello()
        except RequestTimeoutError:
            if silence is not None:
                silence.note(time.monotonic() - started_s)
            raise
        self._has_waited = True
        return found
