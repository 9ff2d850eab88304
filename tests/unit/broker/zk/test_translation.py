from __future__ import annotations

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import ForceRetryError

from broker.errors import RegistryUnreachableError
from broker.zk.session import LOST_REQUEST, translated


@pytest.mark.parametrize(
    "kind", [*LOST_REQUEST, kazoo_errors.SessionMovedError, KazooTimeoutError, ForceRetryError]
)
def test_failure_when_no_answer_came_then_says_why_in_words(kind: type[Exception]) -> None:
    with pytest.raises(RegistryUnreachableError) as caught, translated("zk1:2181", "/a"):
        raise kind
    text = str(caught.value)
    assert text.startswith("no answer from ZooKeeper at zk1:2181: ")
    assert kind.__name__ not in text
