from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

import pytest

from broker import threads
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.errors import TopicNotFoundError
from broker.log.log import Log
from broker.protocol.framing import Frames, encode_frame
from broker.server.network import processor
from broker.server.network.frame_receiver import LARGE_FRAME_BYTES
from broker.server.network.principal_quotas import PrincipalQuotas
from broker.server.network.processor import SLICE_S, Processor
from broker.server.network.quotas import QueuedBytes
from broker.server.network.response_queue import MAX_QUEUED_RESPONSES, MAX_WAITING_READS
from broker.server.requests.client import ConnectedClient
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.outcomes import (
    CloseConnection,
    Offload,
    Outcome,
    Work,
    YieldTurn,
)
from broker.server.requests.purgatory import (
    DelayedResponse,
    DelayKind,
    Part,
    RequestGroup,
    Response,
)
from tests.support.frames import frames_of
from tests.support.network import Left, network_parts
from tests.support.waiting import wait_until

NEVER_S = 1e9
Respond = Callable[[bytes], Outcome | None]


class ScriptedHandlers:
    """Handles each frame as the test says."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self.handled: list[bytes] = []
        self.runs: list[list[bytes]] = []

    def handle(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> Iterator[tuple[int, Outcome]]:
        self.runs.append([bytes(frame) for frame in frames])
        for place, frame in enumerate(frames):
            self.handled.append(bytes(frame))
            outcome = self._respond(bytes(frame))
            if outcome is not None:
                yield place + 1, outcome

    def handle_all(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> list[Outcome]:
        return [outcome for _, outcome in self.handle(frames, client, arrived_s)]

    def finish(self, work: Work) -> list[Outcome]:
        found: list[Outcome] = work.future.result()
        return found

    def reconfigure(self, config: BrokerConfig) -> None:
        pass


class Bench:
    """A processor with scripted handlers, and connections to it."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.metrics = ProcessorMetrics(clock, 60.0)
        left = Left(clock)
        self.left = left.addresses
        self.queued_bytes = QueuedBytes(1 << 20)
        self.quotas = PrincipalQuotas(clock)
        self._worker = ThreadPoolExecutor(max_workers=1)
        network = network_parts(
            clock,
            queued_bytes=self.queued_bytes,
            quotas=self.quotas,
            worker=self._worker,
            connection_count=left,
        )
        self.processor = Processor("processor-under-test", self.metrics, network)
        self.handlers = ScriptedHandlers(lambda frame: None)
        self._clients: list[socket.socket] = []
        self._is_running = False

    def start(self, respond: Respond, respond_later: Respond = lambda frame: None) -> None:
        """Start the processor; frames it offloads go to `respond_later`, in another thread."""
        self.handlers = ScriptedHandlers(respond)
        self.processor.start(self.handlers, ScriptedHandlers(respond_later))
        self._is_running = True

    def connect(self, name: str = "client") -> socket.socket:
        client, server = socket.socketpair()
        client.settimeout(60)
        server.setblocking(False)
        self.processor.add_connection(server, name)
        self._clients.append(client)
        return client

    def stop_processor(self) -> None:
        self._is_running = False
        self.processor.stop()

    def stop(self) -> None:
        if self._is_running:
            self.stop_processor()
        self._worker.shutdown()
        for client in self._clients:
            client.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.stop()


class QuietLog:
    """Says nothing of its flushes: the test does."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        pass

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        pass


def delayed(
    attempt: Callable[[bool], list[Part] | None],
    *,
    deadline_s: float = NEVER_S,
    flushed_log: QuietLog | None = None,
) -> DelayedResponse:
    logs: list[Log] = [] if flushed_log is None else [flushed_log]  # type: ignore[list-item]  # stands in
    return DelayedResponse(attempt, deadline_s, logs, awaits_flush=flushed_log is not None)


def test_handler_when_it_fails_by_a_bug_then_only_its_connection_closes(
    bench: Bench, expects_bugs: None, caplog: pytest.LogCaptureFixture
) -> None:
    def respond(frame: bytes) -> Outcome:
        if frame == b"bug":
            raise ZeroDivisionError
        return Response(frame)

    bench.start(respond)
    broken, fine = bench.connect(), bench.connect()
    fine.sendall(encode_frame(b"one"))
    assert fine.recv(3) == b"one"
    broken.sendall(encode_frame(b"bug"))
    assert broken.recv(1) == b""
    fine.sendall(encode_frame(b"two"))
    assert fine.recv(3) == b"two"
    assert "ZeroDivisionError" in caplog.text


def test_delayed_response_when_its_attempt_fails_by_a_bug_then_only_its_connection_closes(
    bench: Bench, expects_bugs: None
) -> None:
    waiting: list[DelayedResponse] = []

    def respond(frame: bytes) -> Outcome:
        if frame != b"park":
            return Response(frame)
        waiting.append(delayed(attempt))
        return waiting[0]

    is_broken = threading.Event()

    def attempt(is_last: bool) -> list[Part] | None:
        if is_broken.is_set():
            raise ZeroDivisionError
        return None

    bench.start(respond)
    broken, fine = bench.connect(), bench.connect()
    broken.sendall(encode_frame(b"park"))
    wait_until(lambda: waiting, "the request")
    is_broken.set()
    bench.processor.wake(waiting[0])
    assert broken.recv(1) == b""
    fine.sendall(encode_frame(b"two"))
    assert fine.recv(3) == b"two"


def test_delayed_response_when_deadline_passes_then_attempted_a_last_time(
    bench: Bench,
) -> None:
    def attempt(is_last: bool) -> list[Part] | None:
        return [b"late"] if is_last else None

    deadline_s = SystemClock().monotonic_s() + 0.05
    bench.start(lambda frame: delayed(attempt, deadline_s=deadline_s))
    client = bench.connect()
    client.sendall(encode_frame(b"x"))
    assert client.recv(4) == b"late"
    counts = bench.processor.purgatory.counts[DelayKind.OTHER]
    wait_until(lambda: (counts.waits.count, counts.expired) == (1, 1), "the count of both")


def test_delayed_response_when_it_puts_its_deadline_off_then_attempted_again_at_the_new_one(
    bench: Bench,
) -> None:
    waiting: list[DelayedResponse] = []
    attempts: list[bool] = []

    def attempt(is_last: bool) -> list[Part] | None:
        attempts.append(is_last)
        if attempts.count(True) == 3:
            return [b"late"]
        if is_last:
            waiting[0].deadline_s = SystemClock().monotonic_s() + 0.02
        return None

    def respond(frame: bytes) -> Outcome:
        waiting.append(delayed(attempt, deadline_s=SystemClock().monotonic_s() + 0.02))
        return waiting[0]

    bench.start(respond)
    client = bench.connect()
    client.sendall(encode_frame(b"x"))
    assert client.recv(4) == b"late"
    assert attempts == [False, True, True, True]


@pytest.fixture
def quick_sweeps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.05)
    monkeypatch.setattr("broker.server.network.connection._HALF_CLOSED_S", 0.0)
    bench.processor._next_sweep_s = 0.0


def test_delayed_response_when_client_leaves_then_forgotten(
    bench: Bench, quick_sweeps: None
) -> None:
    attempts: list[bool] = []
    waiting: list[DelayedResponse] = []

    def attempt(is_last: bool) -> list[Part] | None:
        attempts.append(is_last)
        return None

    def respond(frame: bytes) -> Outcome:
        waiting.append(delayed(attempt))
        return waiting[-1]

    bench.start(respond)
    client = bench.connect()
    client.sendall(encode_frame(b"x"))
    wait_until(lambda: len(attempts) == 1, "the request")
    client.close()
    wait_until(lambda: bench.left, "the end of the connection")
    bench.processor.wake(waiting[0])
    other = bench.connect()
    other.sendall(encode_frame(b"x"))
    wait_until(lambda: len(attempts) == 2, "the next request")
    assert len(attempts) == 2


def test_delayed_response_when_processor_stops_then_completed(bench: Bench) -> None:
    def attempt(is_last: bool) -> list[Part] | None:
        return [b"the end"] if is_last else None

    bench.start(lambda frame: delayed(attempt))
    client = bench.connect()
    client.sendall(encode_frame(b"x"))
    wait_until(lambda: bench.handlers.handled, "the request")
    bench.stop_processor()
    assert client.recv(7) == b"the end"
    assert client.recv(1) == b""


def test_connection_when_client_is_gone_while_responses_complete_then_leaves_once(
    bench: Bench,
) -> None:
    """Answers become known between the attempt and the watch, and the client is gone by then."""
    clients: list[socket.socket] = []
    asked: list[DelayedResponse] = []

    def attempt_of(number: int) -> Callable[[bool], list[Part] | None]:
        calls: list[bool] = []

        def attempt(is_last: bool) -> list[Part] | None:
            calls.append(is_last)
            if len(calls) == 1:
                clients[0].close()
                return None
            return [b"x" * 100]

        return attempt

    def respond(frame: bytes) -> Outcome:
        asked.append(delayed(attempt_of(len(asked))))
        return asked[-1]

    bench.start(respond)
    clients.append(bench.connect("leaver"))
    clients[0].sendall(encode_frame(b"x") * 100)
    wait_until(lambda: bench.left, "the end of the connection")
    for one in asked:
        bench.processor.wake(one)
    other = bench.connect("other")
    other.close()
    wait_until(lambda: "other" in bench.left, "the end of the other connection")
    assert bench.left == ["leaver", "other"]


def test_deadlines_when_responses_complete_early_then_do_not_pile_up(bench: Bench) -> None:
    waiting: SimpleQueue[DelayedResponse] = SimpleQueue()
    may_complete = threading.Event()

    def attempt(is_last: bool) -> list[Part] | None:
        return [b"y"] if may_complete.is_set() else None

    def respond(frame: bytes) -> Outcome:
        may_complete.clear()
        one = delayed(attempt)
        waiting.put(one)
        return one

    bench.start(respond)
    client = bench.connect()
    for _ in range(500):
        client.sendall(encode_frame(b"x"))
        one = waiting.get(timeout=60)
        may_complete.set()
        bench.processor.wake(one)
        assert client.recv(1) == b"y"
    assert len(bench.processor.purgatory._deadlines) < 100


def test_responses_when_client_takes_none_then_requests_of_one_read_wait(
    bench: Bench,
) -> None:
    bench.start(lambda frame: Response(bytes(1 << 20)))
    client = bench.connect()
    client.sendall(encode_frame(b"x") * 1000)
    other = bench.connect()
    other.sendall(encode_frame(b"x"))
    assert len(other.recv(1 << 20)) > 0
    assert len(bench.handlers.handled) < 100


def test_responses_when_client_takes_them_at_last_then_all_come(bench: Bench) -> None:
    bench.start(lambda frame: Response(bytes(1 << 18)))
    client = bench.connect()
    client.sendall(encode_frame(b"x") * 200)
    received = 0
    while received < 200 << 18:
        received += len(client.recv(1 << 20))
    assert received == 200 << 18
    assert len(bench.handlers.handled) == 200


def test_responses_when_too_many_wait_behind_a_delayed_one_then_later_requests_wait(
    bench: Bench,
) -> None:
    is_open = threading.Event()
    first: list[DelayedResponse] = []

    def attempt(is_last: bool) -> list[Part] | None:
        return [b"y"] if is_open.is_set() else None

    def respond(frame: bytes) -> Outcome:
        if frame == b"park":
            first.append(delayed(attempt))
            return first[0]
        return Response(b"y")

    bench.start(respond)
    client = bench.connect()
    client.sendall(encode_frame(b"park") + encode_frame(b"x") * 9999)
    other = bench.connect()
    other.sendall(encode_frame(b"x"))
    assert other.recv(1) == b"y"
    assert len(bench.handlers.handled) < 5000
    is_open.set()
    bench.processor.wake(first[0])
    received = 0
    while received < 10_000:
        received += len(client.recv(1 << 16))
    assert received == 10_000


def test_reader_when_fast_and_greedy_then_others_are_served_in_between(bench: Bench) -> None:
    """A client that takes everything at once must not keep the processor to itself."""
    large = bytes(1 << 20)
    turns: list[str] = []

    def respond(frame: bytes) -> Outcome:
        turns.append(frame.decode())
        return Response(b"y") if frame == b"other" else Response(*[large] * 64)

    bench.start(respond)
    greedy, other = bench.connect(), bench.connect()
    stopped = threading.Event()

    def take() -> None:
        room = bytearray(1 << 20)
        while not stopped.is_set():
            greedy.recv_into(room)

    thread = threading.Thread(target=take)
    thread.start()
    greedy.sendall(encode_frame(b"greedy") * 100)
    wait_until(lambda: turns, "the first greedy request")
    other.sendall(encode_frame(b"other"))
    assert other.recv(1) == b"y"
    stopped.set()
    bench.stop_processor()
    thread.join()
    assert turns.count("greedy") < 100


def test_peer_log_when_bad_frames_repeat_then_one_line(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.start(lambda frame: None)
    with caplog.at_level(logging.WARNING, "broker.server.network.quotas"):
        for _ in range(5):
            client = bench.connect()
            client.sendall(b"\xff" * 4)
            assert client.recv(1) == b""
    assert bench.metrics.bad_frames == 5
    assert caplog.text.count("closed a connection of client") == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_processor_when_it_ended_by_a_bug_then_new_connections_are_closed(
    bench: Bench, expects_bugs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_FAILURES", 2)

    def fail() -> None:
        raise ZeroDivisionError

    bench.start(lambda frame: None)
    old = bench.connect("old")
    monkeypatch.setattr(bench.processor, "_expire", fail)
    broken = bench.connect("broken")
    assert old.recv(1) == b""
    wait_until(lambda: not bench.processor._thread.is_alive(), "the end of the thread")
    late = bench.connect("late")
    assert late.recv(1) == b""
    assert broken.recv(1) == b""
    assert sorted(bench.left) == ["broken", "late", "old"]


def test_processor_when_a_turn_fails_before_its_calls_then_they_are_run(
    bench: Bench, expects_bugs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = bench.processor._mailbox
    take = mailbox.take_wake_up

    def fail_once() -> None:
        monkeypatch.setattr(mailbox, "take_wake_up", take)
        take()
        raise ZeroDivisionError

    bench.processor._next_sweep_s += 100  # which else ends the wait in which they hang
    monkeypatch.setattr(mailbox, "take_wake_up", fail_once)
    bench.start(Response)
    client = bench.connect()
    client.sendall(encode_frame(b"served"))
    assert client.recv(100) == b"served"


def test_processor_when_its_end_fails_by_a_bug_then_connections_are_closed_and_it_ends_once(
    bench: Bench,
    expects_bugs: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(processor, "end_streams", fail)
    bench.start(lambda frame: None)
    client = bench.connect()
    bench.stop_processor()
    assert client.recv(1) == b""
    assert caplog.text.count("failed, and goes on") == 1


def offloading(frame: bytes) -> Outcome:
    """Respond with the frame; offload it if it says that it is slow."""
    return Offload(frames_of([frame])) if frame.startswith(b"slow") else Response(frame)


def test_offloaded_request_when_it_takes_long_then_others_are_served(
    bench: Bench,
) -> None:
    may_go_on = threading.Event()

    def work(frame: bytes) -> Outcome:
        may_go_on.wait(60)
        return Response(frame)

    bench.start(offloading, work)
    slow, other = bench.connect(), bench.connect()
    slow.sendall(encode_frame(b"slow"))
    other.sendall(encode_frame(b"other"))

    assert other.recv(10) == b"other"
    may_go_on.set()
    assert slow.recv(10) == b"slow"


def test_offloaded_request_when_others_come_behind_it_then_completed_in_the_order_they_came(
    bench: Bench,
) -> None:
    worked: list[bytes] = []

    def work(frame: bytes) -> Outcome:
        worked.append(frame)
        return Response(frame)

    bench.start(offloading, work)
    client = bench.connect()
    frames = [b"one.", b"slow two.", b"three.", b"slow four.", b"five.", b"six."]
    client.sendall(b"".join(map(encode_frame, frames[:5])))
    wait_until(lambda: len(worked) == 2, "the worker")
    client.sendall(encode_frame(frames[5]))

    found = b""
    while len(found) < sum(map(len, frames)):
        found += client.recv(100)
    assert found == b"".join(frames)
    assert bench.handlers.handled == frames


def test_offloaded_request_when_its_leader_refuses_it_then_the_connection_ends(
    bench: Bench,
) -> None:
    """A produce of 0.7 that a worker has validated goes on to the leader of its partition."""
    at_leader: Future[list[Outcome]] = Future()

    def work(frame: bytes) -> Outcome:
        return Work(at_leader, RequestGroup.PRODUCE, None, 0.0, 0.0)

    bench.start(offloading, work)
    client = bench.connect()
    client.sendall(encode_frame(b"slow") + encode_frame(b"next"))
    wait_until(lambda: len(bench.handlers.handled) == 1, "the request")
    at_leader.set_result([CloseConnection(TopicNotFoundError("gone"), is_bad_frame=False)])

    assert client.recv(10) == b""
    assert bench.handlers.handled == [b"slow"]


def test_offloaded_request_when_what_follows_is_no_request_then_gets_its_response_before_the_end(
    bench: Bench,
) -> None:
    may_go_on = threading.Event()

    def work(frame: bytes) -> Outcome:
        may_go_on.wait(60)
        return Response(frame)

    bench.start(offloading, work)
    client = bench.connect()
    client.sendall(encode_frame(b"slow") + b"\xff" * 4)
    wait_until(lambda: bench.metrics.bad_frames, "the bad frame")
    may_go_on.set()

    assert client.recv(10) == b"slow"
    assert client.recv(10) == b""


def test_offloaded_request_when_the_client_leaves_then_the_work_is_done_and_nothing_else(
    bench: Bench,
) -> None:
    may_go_on, is_done = threading.Event(), threading.Event()

    def work(frame: bytes) -> Outcome | None:
        may_go_on.wait(60)
        is_done.set()
        return Response(frame)

    bench.start(offloading, work)
    client, other = bench.connect("leaver"), bench.connect()
    client.sendall(encode_frame(b"slow"))
    client.close()
    other.sendall(encode_frame(b"other"))
    assert other.recv(10) == b"other"
    may_go_on.set()

    assert is_done.wait(60)
    wait_until(lambda: bench.left == ["leaver"], "the end of the connection")
    other.sendall(encode_frame(b"other"))
    assert other.recv(10) == b"other"


def test_offloaded_request_when_the_client_leaves_then_its_frame_has_room_until_the_work_is_done(
    bench: Bench,
) -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()

    def respond(frame: bytes) -> Outcome:
        return offloading(frame) if frame != b"much" else Response(bytes(16 << 20))

    def work(frame: bytes) -> Outcome:
        has_begun.set()
        may_go_on.wait(60)
        return Response(frame)

    bench.start(respond, work)
    client = bench.connect("leaver")
    client.sendall(encode_frame(b"much"))
    large = encode_frame(b"slow".ljust(LARGE_FRAME_BYTES + 1))
    client.sendall(large[:-1])  # in two: what comes in one piece needs no room of its own
    wait_until(lambda: bench.queued_bytes.taken == len(large), "room for the frame")
    client.sendall(large[-1:])
    assert has_begun.wait(60)
    client.close()  # which the broker sees as it goes on sending
    wait_until(lambda: bench.left == ["leaver"], "the end of the connection")

    assert bench.queued_bytes.taken == len(large)
    may_go_on.set()
    wait_until(lambda: not bench.queued_bytes.taken, "the room")


def test_offloaded_request_when_the_worker_fails_by_a_bug_then_only_its_connection_closes(
    bench: Bench, expects_bugs: None
) -> None:
    def work(frame: bytes) -> Outcome:
        raise ZeroDivisionError

    bench.start(offloading, work)
    broken, fine = bench.connect(), bench.connect()
    broken.sendall(encode_frame(b"slow"))

    assert broken.recv(1) == b""
    fine.sendall(encode_frame(b"fine"))
    assert fine.recv(10) == b"fine"


def test_processor_when_stopped_while_a_worker_is_busy_then_stops(bench: Bench) -> None:
    is_working, may_go_on = threading.Event(), threading.Event()

    def work(frame: bytes) -> Outcome:
        is_working.set()
        may_go_on.wait(60)
        return Response(frame)

    bench.start(offloading, work)
    client = bench.connect()
    client.sendall(encode_frame(b"slow"))
    assert is_working.wait(60)

    bench.stop_processor()

    assert client.recv(1) == b""
    may_go_on.set()


class Flushing:
    """Requests `flush` wait for a flush of one log until `end`, `other` for that of another log.

    All others get a response at once.
    """

    def __init__(self, bench: Bench) -> None:
        self.waiting: list[DelayedResponse] = []
        self._bench = bench
        self._logs = {b"flush": QuietLog(), b"other": QuietLog()}
        self._is_over = False
        self._attempt_count = 0

    def respond(self, frame: bytes) -> Outcome:
        if frame not in self._logs:
            return Response(frame)
        self.waiting.append(delayed(self._attempt, flushed_log=self._logs[frame]))
        return self.waiting[-1]

    def _attempt(self, is_last: bool) -> list[Part] | None:
        self._attempt_count += 1
        return [b"flushed"] if self._is_over or is_last else None

    def end(self) -> None:
        self._is_over = True
        for one in self.waiting:
            self._bench.processor.wake(one)

    def has_waiting(self, count: int) -> bool:
        return len(self.waiting) == count

    def begin(self, client: socket.socket) -> None:
        """Have the client wait for a flush, which it has done before: it writes to one log."""
        self._park(client)
        self.end()
        assert receive(client, 7) == b"flushed"
        self._is_over = False
        self.waiting.clear()
        self._park(client)
        self._bench.handlers.runs.clear()

    def _park(self, client: socket.socket) -> None:
        self._attempt_count = 0
        client.sendall(encode_frame(b"flush"))
        wait_until(lambda: self._attempt_count == 1, "the request")


def receive(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := client.recv(size - len(found))):
        found += more
    return found


def test_requests_when_few_come_behind_one_that_waits_for_a_flush_then_gather(
    bench: Bench,
) -> None:
    flushing = Flushing(bench)
    bench.start(flushing.respond)
    client, other = bench.connect(), bench.connect()
    flushing.begin(client)
    for frame in (b"one", b"two"):
        client.sendall(encode_frame(frame))
        other.sendall(encode_frame(b"turn"))
        assert receive(other, 4) == b"turn"
    assert bench.handlers.runs == [[b"turn"], [b"turn"]]
    flushing.end()
    assert receive(client, 13) == b"flushedonetwo"
    assert bench.handlers.runs[-1] == [b"one", b"two"]


def test_requests_when_the_client_writes_to_several_logs_then_are_handled_during_a_flush(
    bench: Bench,
) -> None:
    flushing = Flushing(bench)
    bench.start(flushing.respond)
    client = bench.connect()
    for count, frame in enumerate((b"flush", b"other", b"flush", b"other"), start=1):
        client.sendall(encode_frame(frame))
        wait_until(partial(flushing.has_waiting, count), "the request")
    flushing.end()


def test_requests_when_they_come_behind_one_that_waits_for_data_then_are_handled(
    bench: Bench,
) -> None:
    bench.start(lambda frame: delayed(lambda is_last: None) if frame == b"wait" else None)
    client = bench.connect()
    client.sendall(encode_frame(b"wait"))
    wait_until(lambda: bench.handlers.handled, "the request")
    client.sendall(encode_frame(b"next"))
    wait_until(lambda: bench.handlers.handled == [b"wait", b"next"], "the one behind it")


def test_requests_when_many_come_together_then_those_behind_are_handled_during_the_flush(
    bench: Bench,
) -> None:
    flushing = Flushing(bench)
    bench.start(flushing.respond)
    client = bench.connect()
    client.sendall(encode_frame(b"flush") * 1000)
    wait_until(partial(flushing.has_waiting, 1000), "the requests")
    client.sendall(encode_frame(b"next"))
    wait_until(lambda: bench.handlers.handled[-1] == b"next", "the one behind them")
    flushing.end()


def test_client_when_it_leaves_during_a_flush_then_is_seen_off_after_it(bench: Bench) -> None:
    flushing = Flushing(bench)
    bench.start(flushing.respond)
    client = bench.connect()
    flushing.begin(client)
    client.close()
    flushing.end()
    wait_until(lambda: bench.left, "the end of the connection")


def test_publish_when_its_client_closes_its_half_then_responds_after_the_flush(
    bench: Bench,
) -> None:
    is_flushed = threading.Event()
    waiting: list[DelayedResponse] = []

    def respond(frame: bytes) -> Outcome:
        waiting.append(
            DelayedResponse(
                lambda is_last: [b"flushed"] if is_flushed.is_set() else None,
                NEVER_S,
                [],
                awaits_flush=True,
                kind=DelayKind.PUBLISH,
            )
        )
        return waiting[-1]

    bench.start(respond)
    client, other = bench.connect(), bench.connect("other")
    client.sendall(encode_frame(b"publish"))
    client.shutdown(socket.SHUT_WR)
    wait_until(lambda: waiting, "the request")
    other.close()
    wait_until(lambda: bench.left == ["other"], "the end of another connection")

    is_flushed.set()
    bench.processor.wake(waiting[0])

    assert receive(client, 7) == b"flushed"
    assert client.recv(1) == b""


def test_processor_when_it_stops_during_a_flush_then_responds_to_what_has_gathered(
    bench: Bench,
) -> None:
    flushing = Flushing(bench)
    bench.start(flushing.respond)
    client = bench.connect()
    flushing.begin(client)
    client.sendall(encode_frame(b"late"))
    bench.stop_processor()
    assert receive(client, 11) == b"flushedlate"


def test_connections_when_many_use_up_their_turns_then_one_that_asks_little_comes_first(
    bench: Bench,
) -> None:
    """Fair by work: it does not wait until each of the others had another turn."""
    count = 30
    turns: list[bytes] = []
    turns_before_little: list[int] = []

    def respond(frame: bytes) -> Outcome:
        if frame == b"little":
            turns_before_little.append(len(turns))
            return Response(frame)
        turns.append(frame)
        end_s = time.perf_counter() + 2 * SLICE_S
        while time.perf_counter() < end_s:
            continue
        return YieldTurn()

    bench.start(respond)
    little = bench.connect()
    little.sendall(encode_frame(b"little"))
    assert receive(little, 6) == b"little"
    for _ in range(count):
        # what follows the first is held for as many turns
        bench.connect().sendall(encode_frame(b"much") * 1000)
    wait_until(lambda: len(turns) > 2 * count, "a second turn of each")

    little.sendall(encode_frame(b"little"))
    before = len(turns)

    assert receive(little, 6) == b"little"
    assert turns_before_little[-1] - before < count // 2


def test_connections_when_the_thread_waits_in_a_turn_then_its_connection_does_not_pay_for_it(
    bench: Bench,
) -> None:
    """Of many that ask the same, none is passed over since its turn was interrupted."""
    count = 20
    turns: list[bytes] = []

    def respond(frame: bytes) -> Outcome:
        turns.append(frame)
        if frame == b"wait":
            time.sleep(0.1)
        return YieldTurn()

    bench.start(respond)
    for number in range(count):
        frames = [b"much"] * 300
        if number == 0:
            frames[100:102] = b"wait", b"next"
        bench.connect().sendall(b"".join(map(encode_frame, frames)))
    wait_until(lambda: b"next" in turns, "a turn after the wait")

    assert turns.index(b"next") - turns.index(b"wait") < 3 * count


def test_requests_when_thousands_come_in_one_read_then_few_are_cut_at_a_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.frame_receiver.MAX_FRAMES", 10)
    bench.start(Response)
    client = bench.connect()
    frames = [b"%04d" % number for number in range(1234)]
    client.sendall(b"".join(map(encode_frame, frames)))

    assert receive(client, 4 * len(frames)) == b"".join(frames)
    assert bench.handlers.handled == frames
    assert max(map(len, bench.handlers.runs)) == 10


class HeldPause:
    """The processor's sleep, which ends when the test says; that of other threads is as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self._sleep = time.sleep
        monkeypatch.setattr("time.sleep", self)
        monkeypatch.setattr("broker.server.network.processor._AT_ONCE_S", NEVER_S)
        monkeypatch.setattr("broker.server.network.processor._ALONE_S", 0.0)

    def __call__(self, seconds: float) -> None:
        if threading.current_thread().name != "processor-under-test":
            self._sleep(seconds)
            return
        self.has_begun.set()
        assert self.may_end.wait(60)


def test_requests_without_responses_when_sent_one_by_one_then_gather(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = HeldPause(monkeypatch)
    bench.start(lambda frame: None)
    client = bench.connect()
    client.sendall(encode_frame(b"first"))
    assert pause.has_begun.wait(60)
    for text in (b"second", b"third"):
        client.sendall(encode_frame(text))
    pause.may_end.set()
    wait_until(lambda: len(bench.handlers.handled) == 3, "both are handled")
    assert bench.handlers.runs == [[b"first"], [b"second", b"third"]]


def test_requests_without_responses_when_others_were_served_lately_then_are_handled_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = HeldPause(monkeypatch)
    monkeypatch.setattr("broker.server.network.processor._ALONE_S", NEVER_S)
    bench.start(lambda frame: Response(frame) if frame == b"answered" else None)
    client, other = bench.connect(), bench.connect()
    other.sendall(encode_frame(b"answered"))
    assert other.recv(100) == b"answered"

    def send(text: bytes) -> None:
        client.sendall(encode_frame(text))
        wait_until(lambda: bench.handlers.handled[-1] == text, "it is handled")

    for text in (b"first", b"second", b"third"):
        send(text)
    assert not pause.has_begun.is_set()


def test_requests_with_responses_when_sent_one_by_one_then_are_handled_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = HeldPause(monkeypatch)
    bench.start(lambda frame: Response(frame))
    client = bench.connect()
    for text in (b"first", b"second", b"third"):
        client.sendall(encode_frame(text))
        assert client.recv(100) == text
    assert not pause.has_begun.is_set()


def test_client_when_it_leaves_with_requests_behind_one_that_waits_then_is_closed(
    bench: Bench, quick_sweeps: None
) -> None:
    bench.start(
        lambda frame: delayed(lambda is_last: None) if frame == b"wait" else Response(frame)
    )
    client = bench.connect("leaver")
    client.sendall(encode_frame(b"wait") + encode_frame(b"next") * (2 * MAX_QUEUED_RESPONSES))
    wait_until(lambda: len(bench.handlers.handled) > MAX_QUEUED_RESPONSES, "the requests")
    assert bench.left == []

    client.close()

    wait_until(lambda: bench.left == ["leaver"], "the end of the connection")
    assert bench.processor.purgatory.all() == []


def test_reads_when_a_client_has_many_that_wait_then_few_are_attempted(bench: Bench) -> None:
    is_over = threading.Event()
    waiting: list[DelayedResponse] = []

    def attempt(is_last: bool) -> list[Part] | None:
        return [b"y"] if is_over.is_set() else None

    def respond(frame: bytes) -> Outcome:
        waiting.append(delayed(attempt))
        return waiting[-1]

    bench.start(respond)
    client, other = bench.connect(), bench.connect()
    client.sendall(encode_frame(b"wait") * 100)
    wait_until(lambda: len(waiting) == MAX_WAITING_READS + 1, "the first of them")
    other.sendall(encode_frame(b"wait"))
    wait_until(lambda: len(waiting) == MAX_WAITING_READS + 2, "that of another client")

    is_over.set()
    for one in list(waiting):
        bench.processor.wake(one)

    assert receive(client, 100) == b"y" * 100


def test_publish_when_its_flush_ends_among_many_reads_then_responds_before_them(
    bench: Bench,
) -> None:
    """Its append wakes them all, and thousands may wait."""
    may_complete = threading.Event()
    waiting: list[DelayedResponse] = []
    completed: list[bytes] = []

    def respond(frame: bytes) -> Outcome:
        def attempt(is_last: bool) -> list[Part] | None:
            if not may_complete.is_set():
                return None
            completed.append(frame)
            return [frame]

        flushed_log = QuietLog() if frame == b"publish" else None
        waiting.append(delayed(attempt, flushed_log=flushed_log))
        return waiting[-1]

    bench.start(respond)
    readers = [bench.connect() for _ in range(10)]
    publisher = bench.connect()
    for _ in range(2):  # the publisher has had more of the processor's time than they
        publisher.sendall(encode_frame(b"publish"))
    for reader in readers:
        reader.sendall(encode_frame(b"read") * 5)
    wait_until(lambda: len(waiting) == 52, "the requests")

    may_complete.set()
    for one in waiting:
        bench.processor.purgatory.note_woken(one)
    bench.processor._mailbox.wake()

    assert receive(publisher, 14) == b"publish" * 2
    for reader in readers:
        assert receive(reader, 20) == b"read" * 5
    assert completed == [b"publish"] * 2 + [b"read"] * 50


def test_response_of_a_worker_when_its_client_leaves_then_the_work_is_cancelled(
    bench: Bench, quick_sweeps: None
) -> None:
    work: Future[list[Outcome]] = Future()
    bench.start(lambda frame: Work(work, RequestGroup.OTHER, 1, 0.0, 0.0))
    client = bench.connect("leaver")
    client.sendall(encode_frame(b"slow") + encode_frame(b"behind it"))
    wait_until(lambda: bench.handlers.handled, "the request")

    client.close()

    wait_until(work.cancelled, "the end of the work")
    wait_until(lambda: bench.left == ["leaver"], "the end of the connection")
    assert bench.handlers.handled == [b"slow"]
