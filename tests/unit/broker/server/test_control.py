from __future__ import annotations

from concurrent.futures import Future
from typing import cast
from unittest.mock import create_autospec

from broker.cluster_state import ShutdownProgress
from broker.protocol.replica_requests import ControlledShutdownRequest
from broker.protocol.requests import RequestHeader
from broker.server.control import ControlHandler
from broker.server.controller_thread import ControllerThread
from broker.server.replica_manager import ReplicaManager


def test_response_when_client_hangs_up_before_the_controller_has_decided_then_nothing_fails() -> (
    None
):
    outcome: Future[ShutdownProgress] = Future()
    handler = ControlHandler(cast(ReplicaManager, None))
    controller = create_autospec(ControllerThread)
    controller.controlled_shutdown.return_value = outcome
    handler.controller = controller
    response = handler.handle(ControlledShutdownRequest(1, 1), RequestHeader(0, 7, "b"))

    response.cancel()  # as a connection does when it closes
    outcome.set_result(ShutdownProgress((), (), ()))

    assert len(response.result(60)) == 1
    handler.stop()
