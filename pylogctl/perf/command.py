"""`pylogctl perf`: measures throughput and latency."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import accepts
from pylogctl.cli.tree import Command, new_app
from pylogctl.perf.options import PacedChoice, ProduceChoice, ReadChoice

app = new_app("Measure throughput and latency.")

_RUNS = (ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFIG)
_READS = (*_RUNS, ExitStatus.PARTIAL, ExitStatus.CORRUPT)

_Topic = Annotated[str, argument("TOPIC", "Topic.")]


@app.command("produce", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    *shared.DRY_RUN,
    exits=_RUNS,
    dumps_properties=True,
    first="--messages --duration --size --payload-file --batch -z --threads --rate --warmup",
    examples=(
        "pylogctl perf produce bench --messages 1000000 --size 200 --batch 50",
        "pylogctl perf produce bench --duration 1m --size 100..2000 --rate 5MiB/s "
        "-X request.required.acks=1",
        "pylogctl perf produce bench --payload-file app.log --codec snappy --output json",
    ),
)
def produce(
    env: Environment,
    topic: _Topic,
    choice: ProduceChoice,
) -> None:
    """Send messages as fast as possible and measure it.

    The clock stops when all messages are readable. A latency is the time from sending a batch
    until its acknowledgement is read; with -X max.in.flight.requests=1 each is awaited before the
    next is sent. The overhead is the growth of the topic's logs beyond the payloads, per message;
    it is wrong if others produce to the topic meanwhile.
    """
    from broker.units import parse_rate
    from pylogctl.cli.properties import PERF_PRODUCE
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs
    from pylogctl.perf.produce import ProducePlan

    config = plans.producer_config(env, PERF_PRODUCE, choice.codec)
    plans.validate_output(env, choice, compat07=choice.compat07)
    plan = ProducePlan(
        topic,
        plans.batches_of(choice.size, choice.payload_file, choice.batch),
        message_count=choice.messages,
        duration_s=plans.duration_s_of(choice),
        warmup_count=choice.warmup,
        thread_count=choice.threads,
        rate=None if choice.rate is None else parse_rate(choice.rate),
        is_sequential=config.max_in_flight == 1,
    )
    if env.settings.dry_run:
        runs.show_plan(env, plan, config)
    else:
        runs.measure_produce(env, plan, config, choice)


@app.command("consume", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
    examples=(
        "pylogctl perf consume bench",
        "pylogctl perf consume bench --messages 1000000 -X fetch.size=200000 --output json",
        "pylogctl perf consume bench --duration 1m -o end --threads 2",
        "pylogctl perf consume bench --simple -p 1-0 -X fetch.size=200000",
    ),
)
def consume(
    env: Environment,
    topic: _Topic,
    choice: ReadChoice,
) -> None:
    """Read messages as fast as possible, decode every one, and measure it.

    Without --messages and --duration it reads the messages that exist now, for 10s at most. Without
    --duration it ends when no message came for 5s, or for -X consumer.timeout.ms; with status 7 if
    --messages is not reached. The clock stops with the last message. A latency is the time a reader
    waits for the next chunk; one request is always in flight. With --simple it is that of a request
    and its response.
    """
    from broker.consumer.config import ConsumerConfig
    from broker.partition_patterns import parse_partition_list
    from pylogctl.cli.client_settings import client_settings
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.properties import PERF_CONSUME
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs
    from pylogctl.perf.consume import ConsumePlan, shared_readings, single_reading

    partition = choice.partition
    if choice.simple:
        if choice.threads > 1:
            raise UsageError("--simple reads with one thread")
        partition = partition or parse_partition_list("0")
    config = client_settings(env, PERF_CONSUME, ConsumerConfig, {})
    plans.validate_output(env, choice, compat07=choice.compat07)
    # Without any limit, reading ends at the present end of the log.
    is_bounded = choice.messages is None and choice.duration is None
    plan = ConsumePlan(
        message_count=choice.messages,
        duration_s=plans.duration_s_of(choice),
        idle_timeout_s=plans.idle_timeout_s_of(config, has_duration=choice.duration is not None),
        thread_count=choice.threads,
        fetch_bytes=config.fetch_bytes,
        max_wait_ms=config.max_wait_ms,
        min_bytes=config.fetch_min_bytes,
    )
    runs.measure_reading(
        env,
        single_reading if choice.simple else shared_readings,
        plan,
        config,
        choice,
        topic=topic,
        span=make_span(env, choice.offset or [], from_beginning=False, exit_at_end=is_bounded),
        wanted=partition,
    )


@app.command("e2e", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
    changes=True,
    examples=(
        "pylogctl perf e2e bench --rate 10000/s --size 200",
        "pylogctl perf e2e bench --rate 500/s --duration 1m -X request.required.acks=1",
    ),
)
def e2e(
    env: Environment,
    topic: _Topic,
    choice: PacedChoice,
) -> None:
    """Measure how long messages take from producer to consumer at a fixed rate.

    Another process sends messages at even intervals, and does not slow down when the broker does;
    this one reads them with long polls. A latency runs from the time its message was due until the
    message is decoded here: a pause counts for every message that was due in it. Messages due at
    the same time are sent as one batch. Both processes need enough processor time: LATE-MS is how
    late a message was sent at most.
    """
    from pylogctl.cli.properties import PERF_E2E
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs

    config = plans.producer_config(env, PERF_E2E, choice.codec)
    plans.validate_output(env, choice, compat07=False)
    plan = plans.e2e_plan(env, config, topic, choice)
    runs.measure_e2e(env, plan, config, choice)
