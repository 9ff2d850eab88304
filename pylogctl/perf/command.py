"""`pylogctl perf`: measures throughput and latency."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.perf.options import MeasuredRead, PacedChoice, ProduceChoice

app = shared.App()

_RUNS = (ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFIG)
_READS = (*_RUNS, ExitStatus.PARTIAL, ExitStatus.CORRUPT)

_Topic = Annotated[str, argument("TOPIC", "Topic.")]


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROPERTIES + shared.PROGRESS + shared.DRY_RUN,
    exits=_RUNS,
    dumps_properties=True,
    first="--messages --duration --size --payload-file --batch -z --threads --rate --warmup",
)
def produce(env: Environment, topic: _Topic, choice: ProduceChoice) -> int:
    r"""Send messages as fast as possible and measure it.

    The clock stops when all messages are readable. A latency is the time from sending a batch
    until its acknowledgement is read; with -X max.in.flight.requests=1 each is awaited before the
    next is sent. The overhead is the growth of the topic's logs beyond the payloads, per message;
    it is wrong if others produce to the topic meanwhile.

    $ pylogctl perf produce bench --messages 1000000 --size 200 --batch 50
    $ pylogctl perf produce bench --duration 1m --size 100..2000 --rate 5MiB/s -X \
        request.required.acks=1
    $ pylogctl perf produce bench --payload-file app.log --codec snappy --output json
    """
    from pylogctl.perf.run import produce as run

    return run(env, topic, choice)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROPERTIES + shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
)
def consume(env: Environment, topic: _Topic, choice: MeasuredRead) -> int:
    """Read messages as fast as possible, decode every one, and measure it.

    Without --messages and --duration it reads the messages that exist now, for 10s at most. Without
    --duration it ends when no message came for 5s, or for -X consumer.timeout.ms; with status 7 if
    --messages is not reached. The clock stops with the last message. A latency is the time a reader
    waits for the next chunk; one request is always in flight. With --simple it is that of a request
    and its response.

    $ pylogctl perf consume bench
    $ pylogctl perf consume bench --messages 1000000 -X fetch.size=200000 --output json
    $ pylogctl perf consume bench --duration 1m -o end --threads 2
    $ pylogctl perf consume bench --simple -p 1-0 -X fetch.size=200000
    """
    from pylogctl.perf.run import consume as run

    return run(env, topic, choice)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROPERTIES + shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
    changes=True,
)
def e2e(env: Environment, topic: _Topic, choice: PacedChoice) -> int:
    """Measure how long messages take from producer to consumer at a fixed rate.

    Another process sends messages at even intervals, and does not slow down when the broker does;
    this one reads them with long polls. A latency runs from the time its message was due until the
    message is decoded here: a pause counts for every message that was due in it. Messages due at
    the same time are sent as one batch. Both processes need enough processor time: LATE-MS is how
    late a message was sent at most.

    $ pylogctl perf e2e bench --rate 10000/s --size 200
    $ pylogctl perf e2e bench --rate 500/s --duration 1m -X request.required.acks=1
    """
    from pylogctl.perf.run import e2e as run

    return run(env, topic, choice)
