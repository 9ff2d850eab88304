from __future__ import annotations

from concurrent.futures import Future
from typing import cast

from broker.cluster_state import ShutdownProgress
from broker.protocol.layouts import ControllerRequest
from broker.protocol.replica_requests import ControlledShutdownRequest
from broker.protocol.requests import RequestHeader
from broker.server.cluster.controller_requests import ControllerRequests
from broker.server.cluster.replica_manager import ReplicaManager
from broker.server.requests.client import ConnectedClient
from broker.server.requests.control import ControlHandler
from broker.server.requests.creation_limits import CreationLimits
from broker.server.requests.judge import RequestContext
from broker.server.requests.metrics import RequestErrors


class SlowController:
    """Answers when the test wants it to."""

    def __init__(self) -> None:
        self.outcome: Future[ShutdownProgress] = Future()

    def handle(self, _: ControllerRequest) -> Future[ShutdownProgress]:
        return self.outcome


def test_response_when_client_hangs_up_before_the_controller_has_decided_then_nothing_fails() -> (
    None
):
    controller = SlowController()
    handler = ControlHandler(
        cast(ReplicaManager, None), RequestErrors(), cast(CreationLimits, None)
    )
    handler.controller = cast(ControllerRequests, controller)
    response = handler.handle(
        ControlledShutdownRequest(1, 1),
        RequestContext(RequestHeader(0, 7, "b"), ConnectedClient("10.0.0.1"), None),
    )

    response.cancel()  # as a connection does when it closes
    controller.outcome.set_result(ShutdownProgress((), (), ()))

    assert len(response.result(60)) == 1
    handler.stop()
