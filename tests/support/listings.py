"""Every listing with the data that makes it hard to lay out, and a program that shows them all.

`python -m tests.support.listings` writes each listing behind a line with its name to the terminal
it runs on, in the width of that.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from broker.admin.brokers import BrokerStatus, LogFailure
from broker.admin.cluster import BrokerInfo, HealthCheck
from broker.admin.reassignment import Move, MoveProgress
from broker.admin.registry_nodes import TreeAcls
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.admin.users import User
from broker.log.offline.inspect import SegmentStat
from broker.log.offline.recover import RecoveryPlan
from broker.log.offline.rewrite import LeftOut
from broker.log.offline.segment_run import SegmentProblem
from broker.topic import TopicPartition
from pylogctl.audit import run as audit
from pylogctl.broker import document as broker
from pylogctl.cli import properties
from pylogctl.cli.columns import UNKNOWN, Document, Row
from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.cli.render import render
from pylogctl.cluster import document as cluster
from pylogctl.cluster import recover
from pylogctl.config import document as config
from pylogctl.consume import retry
from pylogctl.copy import run as copy
from pylogctl.doctor import checks as doctor
from pylogctl.group import document as group
from pylogctl.help import command as help_
from pylogctl.log import document as log
from pylogctl.mirror import document as mirror
from pylogctl.perf import document as perf
from pylogctl.pipeline import document as pipeline
from pylogctl.produce import run as produce
from pylogctl.topic import document as topic
from pylogctl.user import changes as user
from pylogctl.zk import document as zk
from pylogctl.zk.changes import ACLS

MARK = "=== "
END = f"{MARK}end"

TOPICS = tuple(f"payments.settlement.{place}.transactions-v2" for place in ("eu-1", "us-2", "ap-3"))
GROUP = "billing-settlement-reconciliation"
OFFSET = 4_814_207_331_208  # of 13 digits
TIME_MS = 1_795_656_865_250
MIB = 1 << 20
BROKERS = range(20)


def _host(id: int) -> str:
    return f"broker-{id:02}.kafka.eu-central-1.example.org"


def _member(number: int) -> str:
    return f"{GROUP}_worker-{number}.billing.example.org-1795656865250-9a3e1b{number:02x}"


class Listing(NamedTuple):
    """The rows of a document, and the last row if it has a total."""

    document: Document
    rows: Sequence[Any]
    total: Row | None = None


def _brokers() -> Iterator[BrokerStatus]:
    for id in BROKERS:
        where = (id, f"{_host(id)}:9092")
        if id == 7:
            yield BrokerStatus(*where, "down")
        elif id == 8:
            yield BrokerStatus(*where, "running (0.7)")
        else:
            yield BrokerStatus(
                *where,
                "running",
                uptime_s=86_400.0 * id + 130.5,
                topics=412,
                partitions=12_408 + id,
                size_bytes=OFFSET + id * MIB,
                connections=1_024 + id,
                produce_requests_per_s=3_217.4 + id,
                fetch_requests_per_s=12.6,
                last_flush=datetime.fromtimestamp(TIME_MS / 1000, UTC),
                is_clean_start=id != 3,
                session="suspended" if id == 5 else "connected",
                is_registered=id != 5,
                failures=tuple(
                    LogFailure(TopicPartition(TOPICS[0], 3, n), word, "no room")
                    for n, word in enumerate(("full", "unreadable") if id == 3 else ())
                ),
            )


def _lags() -> Iterator[group.LagRow]:
    states = ("OK", "LAG", "NO-OFFSET", "UNKNOWN", "OUT-OF-RANGE")
    for number in range(10):
        state = states[number % len(states)]
        has_offset, has_end = state != "NO-OFFSET", state != "UNKNOWN"
        behind = UNKNOWN if not has_end else 0 if state == "OK" else 12_998_144 + number
        yield group.LagRow(
            GROUP,
            TOPICS[number % 3],
            f"{number}-0",
            f"{_member(number // 2)}-{number % 2}",
            OFFSET + number if has_offset else None,
            str(OFFSET) if has_offset else None,
            OFFSET + 12_998_144 if has_end else UNKNOWN,
            group._Lag(behind if has_offset else None),
            130.4 if has_offset else None,
            group._Pace(
                UNKNOWN if number == 1 else 71.25 if has_offset and has_end else None,
                3_355_443 if has_offset and has_end else None,
                UNKNOWN if state == "OUT-OF-RANGE" else 130.0 if has_offset and has_end else None,
                state,
            ),
        )
    yield group.LagRow(GROUP, owner=_member(9), pace=group._IDLE)


def _sums(state: str) -> group.Sums:
    return group.Sums(384, group._Lag(OFFSET), 130.4, group._Pace(71.0, 3_355_443, 86_500.0, state))


def _figures() -> dict[str, Any]:
    names = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms")
    return {
        "messages": 100_000_000,
        "bytes": 51_200_000_000,
        "seconds": 130.25,
        "msg_per_s": 767_754.3,
        "mib_per_s": 374.879,
        **{name: 1.25 * (place + 1) for place, name in enumerate(names)},
        "cpu_s": 128.5,
        "rss_bytes": 96 * MIB,
    }


def _names() -> Iterator[TopicPartition]:
    for number in range(6):
        yield TopicPartition(TOPICS[number % 3], number, number * 7)


NODES = [
    f"/consumers/{GROUP}/offsets/{TOPICS[0]}/0-0",
    f"/brokers/topics/{TOPICS[1]}/17",
    "/brokers/ids/17",
]


def _node(size: int) -> zk.NodeColumns:
    return zk.NodeColumns(4_096, size, 0, ephemeral=size > 100, modified=TIME_MS)


PATHS = [
    f"/var/lib/pylogctl/data/{TOPICS[0]}_{number}/{OFFSET + number:020}.pylog"
    for number in range(3)
]

_VALUE = zk.ValueRow(
    NODES[0], f"offset {OFFSET}", "34", _node(171), "0x3a1f00c4e2000017", TIME_MS, "0x1f", "0x1f0a"
)

LISTINGS: Mapping[str, Listing] = {
    "broker list": Listing(
        broker.LIST,
        [
            broker.BrokerRow(
                id,
                _host(id),
                9092,
                f"broker-{id:02}-1795656865250",
                UNKNOWN if id == 7 else TIME_MS - id,
                UNKNOWN if id == 7 else f"0x3a1f00c4e2{id:06x}",
                UNKNOWN if id == 7 else 412 + id,
            )
            if id != 9
            else broker.down_row(9, (*TOPICS, "t"))
            for id in BROKERS
        ],
    ),
    "broker status": Listing(broker.STATUS, list(_brokers())),
    "broker status of one": Listing(broker.STATUS, list(_brokers())[3:4]),
    "broker start": Listing(
        broker.READY,
        [
            broker.ReadyRow(
                17,
                _host(17),
                9092,
                ",".join(f"zookeeper-{n}.example.org:2181" for n in range(5)) + "/messaging/main",
                31_415,
                ",".join(f"/var/lib/pylogctl/disk-{n}" for n in range(5)),
            )
        ],
    ),
    "broker stop": Listing(
        broker.STOP,
        [
            broker.ShutdownStep("leave the registry, so that no client asks any more", 0.021),
            broker.ShutdownStep("flush 12408 logs", 71.5, done=False, note="no space left"),
        ],
    ),
    "cluster describe": Listing(
        cluster.DESCRIBE,
        [
            BrokerInfo(
                id,
                None if id == 7 else f"{_host(id)}:9092",
                f"eu-central-1{'abc'[id % 3]}",
                id != 7,
                id == 4,
                None if id == 8 else 0 if id == 7 else 412 + id,
                None if id == 8 else 412,
                None if id == 8 else 1_236,
                None if id == 8 else 1_236,
                tuple(f"{TOPICS[0]}[7-{n}]" for n in range(3)) if id == 7 else (),
            )
            for id in BROKERS
        ],
    ),
    "cluster health": Listing(
        cluster.HEALTH,
        [
            HealthCheck("brokers that are away", "ok", ()),
            HealthCheck(
                "partitions below min.insync.replicas",
                "fail",
                tuple(f"{TOPICS[0]}/0-{n}" for n in range(6)),
            ),
        ],
    ),
    "cluster changes": Listing(
        cluster.CHANGES,
        [
            cluster.StateChangeRow(
                f"11-26 01:34:2{n}.250",
                TIME_MS + n,
                n + 9,
                f"12/{4_095 + n}",
                f"{TOPICS[n]}/{n}-17",
                f"leader {n} -> {n + 9}, in-sync replicas 0,9,17 -> 9,17: broker {n} is away",
                *("leader", TOPICS[n], f"{n}-17", 12, 4_095 + n, n + 9, (9, 17), 3, OFFSET, None),
            )
            for n in range(3)
        ],
    ),
    "cluster recover": Listing(
        recover.RECOVER,
        [
            recover.RecoverRow(
                f"{name}/0-17",
                17,
                f"17: 4096 @ {OFFSET}, 9: 4096 @ {OFFSET - 7}, 3: 4095 @ {OFFSET - 4096}",
                (17, 9, 3),
                name == TOPICS[0],
                "7 bytes of broker 9 after its last common message" if name == TOPICS[1] else None,
                name,
                "5f1d",
                {},
            )
            for name in TOPICS
        ],
    ),
    "config list": Listing(
        config.OVERRIDES,
        [
            config.OverrideRow(TOPICS[0], None, "log.retention.hours", "168", "/config/topics/0"),
            config.OverrideRow(TOPICS[1], None, "log.segment.bytes", str(1 << 30), "/config/t/1"),
            config.OverrideRow(
                None,
                17,
                "replication.throttled.replicas.of.topics",
                ",".join(f"{name}:{n}" for n, name in enumerate(TOPICS)),
                "/config/brokers/17",
            ),
        ],
    ),
    "config list of a topic": Listing(
        config.TOPIC,
        [
            config.TopicSettingRow(
                name, value, "topic", ",".join(map(str, BROKERS)), "168", "at once", "hours of logs"
            )
            for name, value in (("log.retention.hours", "24"), ("log.segment.bytes", "1073741824"))
        ],
    ),
    "config list of a broker": Listing(
        config.BROKER,
        [
            config.BrokerSettingRow(config.InEffect(name, value, "start"), "running", "meaning")
            for name, value in (
                ("log.cleanup.schedule", "at 02:00, 14:00; every 15m between them, archives too"),
                ("num.network.threads", "3"),
            )
        ],
    ),
    "config diff": Listing(
        config.BROKER_DIFF,
        [
            config.BrokerDiffRow(
                config.InEffect(name, value, "broker"), "60000", "10000", "3: 60000, 17: 60000"
            )
            for name, value in (
                ("log.flush.interval.messages", "500000"),
                ("replica.lag.time.max.ms", "10000"),
            )
        ],
    ),
    "config diff of brokers": Listing(
        config.BROKERS_DIFF,
        [
            config.BrokersDiffRow(config.InEffect("log.dirs", f"/var/lib/{n}", "start"), ids)
            for n, ids in enumerate(("0,1,2,3,4,5,6,7", ",".join(map(str, range(8, 20)))))
        ],
    ),
    "config set": Listing(
        config.CHANGE,
        [
            config.SettingChangeRow(name, None, "log.retention.hours", None, "168", "/config")
            for name in TOPICS
        ],
    ),
    "topic list": Listing(
        topic.LIST,
        [
            topic.topic_row(TopicInfo(name, 400, replicas, tuple(BROKERS), size, *away), None)
            for name, replicas, size, away in (
                (TOPICS[0], 3, OFFSET, (0, 0)),
                (TOPICS[1], 3, None, (20, 120)),
                (TOPICS[2], None, 0, (0, 0)),
                ("t", 2, 12, (0, 20)),
            )
        ],
    ),
    "topic describe": Listing(
        topic.DESCRIBE,
        [
            topic.partition_row(
                PartitionInfo(
                    partition=name,
                    leader=None if number == 4 else number,
                    address=f"{_host(number)}:9092",
                    replicas=(number,),
                    in_sync=(number,),
                    start=None if number == 4 else OFFSET - MIB - number,
                    end=None if number == 4 else OFFSET + number,
                    segments=12_408,
                    last_append=datetime.fromtimestamp(TIME_MS / 1000, UTC),
                )
            )
            for number, name in enumerate(_names())
        ],
    ),
    "topic describe with replicas": Listing(
        topic.DESCRIBE,
        [
            topic.partition_row(
                PartitionInfo(
                    partition=name,
                    leader=None if number == 4 else number,
                    replicas=(number, 9, 17),
                    in_sync=((number, 9, 17), (number, 17), (number,))[number if number < 3 else 0],
                    min_in_sync=2,
                    leader_epoch=4_095 + number,
                    start=None if number == 3 else OFFSET - MIB,
                    end=OFFSET,
                    segments=12,
                    last_append=datetime.fromtimestamp(TIME_MS / 1000, UTC),
                    lags={9: None if number == 3 else OFFSET, 17: 0},
                    settings={},
                )
            )
            for number, name in enumerate(_names())
        ],
    ),
    "topic create": Listing(
        topic.CREATE, [topic.CreateRow(TOPICS[0], id, 0, 20, "created") for id in BROKERS]
    ),
    "topic create with replicas": Listing(
        topic.CREATE_REPLICATED,
        [topic.CreateReplicatedRow(n, 17, (17, 9, 3), (17, 9, 3), 2) for n in _names()],
    ),
    "topic elect": Listing(
        topic.ELECT,
        [
            topic.ElectRow(name, "refused", "the preferred leader, broker 17, is not in sync")
            if number == 2
            else topic.ElectRow(name, "elected")
            for number, name in enumerate(_names())
        ],
    ),
    "topic reassign": Listing(
        topic.REASSIGN_PLAN,
        [Move(name, (0, 9, 17), (10, 11, 12)) for name in _names()],
    ),
    "topic reassign status": Listing(
        topic.REASSIGN_STATUS,
        [
            MoveProgress(
                name,
                (0, 9, 17),
                (10, 11, 12),
                (11, 12),
                None if number == 1 else OFFSET,
                None if number == 1 else 71,
                12_998_144,
            )
            for number, name in enumerate(_names())
        ],
    ),
    "topic delete": Listing(
        topic.DELETE,
        [
            *(topic.DeleteRow(name, 17, 400, None, "delete") for name in TOPICS),
            topic.DeleteRow(TOPICS[0], None, None, GROUP, "delete"),
        ],
    ),
    "topic offsets": Listing(
        topic.OFFSETS,
        [topic.OffsetsRow(name, OFFSET - MIB, OFFSET, MIB, 0, 0) for name in _names()],
    ),
    "topic count": Listing(
        topic.COUNT,
        [topic.CountRow(name, OFFSET - MIB, OFFSET, MIB, 12_408, 0, 0) for name in _names()],
    ),
    "topic sample": Listing(
        topic.SAMPLE,
        [
            topic.SampleRow(
                name,
                OFFSET + number,
                OFFSET + number + 100,
                number,
                12_408 * number,
                "gzip",
                "9a3e1b2c",
                f'{{"id":{number},"amount":"99.95","currency":"EUR","state":"settled"}}',
            )
            for number, name in enumerate(_names())
        ],
    ),
    "group list": Listing(
        group.LIST,
        [
            group.GroupRow(GROUP, "active", 20, TOPICS, OFFSET, TIME_MS),
            group.GroupRow(f"{GROUP}-2", "empty", 0, TOPICS[:1], UNKNOWN, TIME_MS),
            group.GroupRow("g", "dead", 0, (), None, None),
        ],
    ),
    "group describe": Listing(
        group.DESCRIBE,
        list(_lags()),
        group.LagRow(
            GROUP,
            "total",
            lag=group._Lag(OFFSET),
            commit_age_s=130.4,
            pace=group._Pace(bytes_per_s=33_554_432, eta_s=86_500.0, status="OUT-OF-RANGE"),
        ),
    ),
    "group describe of one topic": Listing(
        group.DESCRIBE, [one for one in _lags() if one.topic == TOPICS[0]]
    ),
    "group describe by topic": Listing(
        group.BY_TOPIC, [group.TopicLagRow(GROUP, name, _sums("LAG")) for name in TOPICS]
    ),
    "group describe by member": Listing(
        group.BY_MEMBER, [group.MemberLagRow(GROUP, _member(n), _sums("OK")) for n in range(3)]
    ),
    "group describe of groups": Listing(
        group.BY_GROUP,
        [group.GroupLagRow(f"{GROUP}-{n}", "active", 20, 3, _sums("LAG")) for n in range(3)],
    ),
    "group lag": Listing(group.LAG, list(_lags())[:-1]),
    "group members": Listing(
        group.MEMBERS,
        [
            group.MemberRow(
                GROUP,
                _member(number),
                ", ".join(f'"{name}": 4' for name in TOPICS),
                list(TOPICS),
                12,
                96 + number,
                TIME_MS,
                "0x3a1f00c4e2",
            )
            for number in range(3)
        ],
    ),
    "group verify": Listing(
        group.VERIFY,
        [
            group.ProblemRow(
                GROUP,
                "stale-owner",
                TOPICS[number],
                f"{number}-0",
                f"{_member(number)}-0",
                "the owner is no member of the group any more; its session has ended",
            )
            for number in range(3)
        ],
    ),
    "group reset": Listing(
        group.RESET,
        [
            group.OffsetChangeRow(
                GROUP,
                TOPICS[number],
                f"{number}-0",
                OFFSET if number else None,
                OFFSET - MIB if number != 2 else None,
                -MIB if number == 1 else None,
                ("new", "back", "removed")[number],
                "moved to the start of the message there" if number == 1 else None,
            )
            for number in range(3)
        ],
    ),
    "group export": Listing(
        group.EXPORT,
        [group.OffsetRow(GROUP, name, "0-0", OFFSET, TIME_MS) for name in TOPICS],
    ),
    "group delete": Listing(group.NODES, [group.NodeRow(GROUP, one, "deleted") for one in NODES]),
    "group rebalance": Listing(
        group.REBALANCE,
        [
            group.RebalanceRow(
                GROUP, TOPICS[n], f"{n}-0", f"{_member(n)}-0", f"{_member((n + 1) % 3)}-0"
            )
            for n in range(3)
        ],
    ),
    "consume retry list": Listing(
        retry.DOCUMENT,
        [
            retry.RetryRow(
                TOPICS[number],
                f"{number}-0",
                OFFSET + number,
                OFFSET + 100,
                number,
                12_408,
                7,
                "dead" if number else "scheduled",
                None if number else TIME_MS,
                "exit status 75: the ledger at https://ledger.example.org/v2 does not respond",
                "payload",
            )
            for number in range(3)
        ],
    ),
    "produce": Listing(
        produce.DOCUMENT,
        [
            {
                "topic": TOPICS[0],
                "partitions": [f"{id}-0" for id in BROKERS],
                "messages": 100_000_000,
                "bytes": OFFSET,
                "seconds": 130.25,
                "messages_per_second": 767_754.3,
                "refused": 0,
                "resumed": 0,
                "verified": True,
                "dry_run": False,
            }
        ],
    ),
    "copy": Listing(
        copy.DOCUMENT,
        [
            copy.CopyRow(
                f"{name}/17-0", f"eu.{name}/17-0", OFFSET - MIB, OFFSET, OFFSET, 12_408, MIB, True
            )
            for name in TOPICS
        ],
    ),
    "log dump": Listing(
        log.DUMP,
        [
            log.DumpRow(
                PATHS[0],
                (1 << 30) + n,
                OFFSET + n,
                12_408 * n,
                1,
                "gzip",
                "9a3e1b2c",
                n != 2,
                n,
                f'{{"id":{n},"amount":"99.95","currency":"EUR","state":"settled"}}',
            )
            for n in range(3)
        ],
    ),
    "log verify": Listing(
        log.VERIFY,
        [
            SegmentProblem(
                PATHS[0], (1 << 30) + n, kind, "crc 9a3e1b2c", "crc 00000000 of 12408 bytes", MIB, 9
            )
            for n, kind in enumerate(("crc", "partial"))
        ],
    ),
    "log stat": Listing(
        log.STAT,
        [
            SegmentStat(
                path,
                1 << 30,
                12_408 + n,
                1_240_800,
                17,
                865.4,
                MIB,
                {"none": 12_000, "gzip": 400 + n, "snappy": 8},
                3.217,
                "crc" if n == 1 else None,
                {1: 12_408},
                {64: 17},
                1 << 30,
                1 << 30,
            )
            for n, path in enumerate(PATHS)
        ],
    ),
    "log index": Listing(
        log.INDEX,
        [log.IndexRow(PATHS[0], n * 12_408, OFFSET + n * 12_408, 12_408) for n in range(3)],
    ),
    "log recover": Listing(
        log.RECOVER,
        [
            RecoveryPlan(
                path,
                1 << 30,
                (1 << 30) - 12_408,
                12_408,
                "crc",
                1_240_800,
                [f"{OFFSET + 100 + n:020}.pylog" for n in range(2)],
                [],
                None if n else f"{path}.cut-1795656865250",
                not n,
            )
            for n, path in enumerate(PATHS)
        ],
    ),
    "log repair": Listing(
        log.REPAIR, [LeftOut(PATHS[0], (1 << 30) + n, "crc", 12_408) for n in range(2)]
    ),
    "log split": Listing(
        log.SEGMENTS, [log.SegmentRow(path, OFFSET, OFFSET + MIB) for path in PATHS]
    ),
    "log compare": Listing(
        log.COMPARE,
        [
            log.CompareRow(
                f"{TOPICS[n]}/0-17",
                ("same", "differ", "none")[n],
                OFFSET - MIB,
                OFFSET,
                MIB,
                ["0", "9", "17"],
                OFFSET - 7 if n == 1 else None,
                "0 and 9, not 17" if n == 1 else None,
                None,
            )
            for n in range(3)
        ],
    ),
    "log replay": Listing(
        log.REPLAY,
        [
            log.ReplayRow(path, f"{TOPICS[n]}[17-0]", OFFSET, OFFSET + MIB, 1_240_800, MIB)
            for n, path in enumerate(PATHS)
        ],
    ),
    "log move": Listing(
        log.MOVE, [log.MoveRow(TOPICS[0], "0-17", 17, "/var/lib/pylogctl/disk-2", OFFSET, 130.5)]
    ),
    "mirror status": Listing(
        mirror.STATUS,
        [
            mirror.StatusRow(
                name,
                OFFSET,
                OFFSET - MIB,
                MIB,
                3_355_443,
                2,
                mirror.Errors(n == 1, TIME_MS, "the target refused it: disk full" if n else None),
            )
            for n, name in enumerate(TOPICS)
        ],
    ),
    "mirror verify": Listing(
        mirror.VERIFY,
        [
            mirror.VerifyRow(
                name,
                f"eu.{name}",
                100_000_000,
                99_999_993,
                7 * (n == 1),
                0,
                "9a3e1b2c" * 4,
                "9a3e1b2c" * 4,
                "missing" if n == 1 else "ok",
            )
            for n, name in enumerate(TOPICS)
        ],
    ),
    "mirror run": Listing(
        mirror.SUMMARY,
        [mirror.SummaryRow(GROUP, 100_000_000, OFFSET, 86_500.0, None, None, 0)],
    ),
    "mirror run, planned": Listing(
        mirror.PLAN,
        [
            mirror.PlanRow(name, f"eu.{name}", 400, 0, OFFSET, "create" if n else "exists")
            for n, name in enumerate(TOPICS)
        ],
    ),
    "audit show": Listing(
        audit.SHOW,
        [
            audit.AuditCountRow(
                audit.CountedWindow(name, TIME_MS, TIME_MS + 600_000, "producer"), OFFSET, OFFSET
            )
            for name in TOPICS
        ],
    ),
    "audit check": Listing(
        audit.CHECK,
        [
            audit.VerdictRow(
                audit.CountedWindow(name, TIME_MS, TIME_MS + 600_000, tier),
                100_000_000,
                100_000_000 - 7 * n,
                -7 * n,
                OFFSET,
                OFFSET,
                ("ok", "missing", "late")[n],
            )
            for n, (name, tier) in enumerate(zip(TOPICS, ("log", "mirror", "load"), strict=True))
        ],
    ),
    "pipeline load": Listing(
        pipeline.LOAD,
        [
            pipeline.LoadRow(412, name, f"{n}-17", OFFSET - MIB, OFFSET, 12_408, MIB, 7 * n, 9)
            for n, name in enumerate(TOPICS)
        ],
    ),
    "pipeline load, planned": Listing(
        pipeline.PLAN,
        [
            pipeline.PipelinePlanRow(name, f"{n}-17", OFFSET - MIB, OFFSET, MIB, 17, 7 * n, 412)
            for n, name in enumerate(TOPICS)
        ],
    ),
    "pipeline audit": Listing(
        pipeline.AUDIT,
        [
            pipeline.AuditRow(
                name, TIME_MS, TIME_MS + 600_000, tier, 100_000_000, 99_999_993, 7, 0, n, "lost"
            )
            for n, (name, tier) in enumerate(zip(TOPICS, ("log", "load", "load"), strict=True))
        ],
    ),
    "perf produce": Listing(perf.PRODUCE, [perf.PerfProduceRow(**_figures(), overhead_bytes=0.41)]),
    "perf produce, planned": Listing(
        perf.PLAN,
        [
            perf.PerfPlanRow(
                *(TOPICS[0], [f"{id}-0" for id in BROKERS], 100_000_000, 130.0, 200),
                *(102_400, "gzip", "-1", 8),
            )
        ],
    ),
    "perf consume": Listing(perf.CONSUME, [perf.ResultRow(**_figures())]),
    "zk ls": Listing(zk.LS, [zk.ChildRow(name) for name in TOPICS]),
    "zk ls --long": Listing(
        zk.LS_LONG, [zk.ChildRow(path, _node(17 * n)) for n, path in enumerate(NODES)]
    ),
    "zk tree": Listing(
        zk.TREE,
        [
            zk.TreeRow(path, path.count("/"), value, _node(17 * n))
            for n, (path, value) in enumerate(
                zip(
                    NODES,
                    (
                        f"offset {OFFSET}",
                        "400 partitions",
                        f"{_host(17)}:9092 (creator broker-17-1795656865250)",
                    ),
                    strict=True,
                )
            )
        ],
    ),
    "zk get": Listing(zk.GET, [_VALUE]),
    "zk get --stat": Listing(zk.GET_STAT, [_VALUE]),
    "zk find": Listing(
        zk.FIND, [zk.FoundRow(path, f"offset {OFFSET}", _node(13)) for path in NODES]
    ),
    "zk watch": Listing(
        zk.WATCH,
        [
            zk.EventRow(TIME_MS, "created", NODES[0], 0, f"offset {OFFSET}"),
            zk.EventRow(TIME_MS + 17, "deleted", NODES[2], 4_096, None),
        ],
    ),
    "zk set": Listing(
        zk.CHANGES_OF_VALUES,
        [
            zk.ChangeRow(
                NODES[0],
                "set",
                13,
                ephemeral=False,
                before=f"offset {OFFSET - 17}",
                after=f"offset {OFFSET}",
            )
        ],
    ),
    "zk rm": Listing(
        zk.CHANGES,
        [zk.ChangeRow(path, "delete", 17 * n, ephemeral=n == 2) for n, path in enumerate(NODES)],
    ),
    "zk diff": Listing(
        zk.DIFF,
        [
            zk.DifferenceRow(NODES[0], "value", f"offset {OFFSET}", f"offset {OFFSET + 17}"),
            zk.DifferenceRow(NODES[2], "missing", None, f"{_host(17)}:9092 (creator box-17)"),
        ],
    ),
    "zk secure": Listing(
        ACLS, [TreeAcls(tree, 17, 4) for tree in ("/", "/brokers", "/creation-ids")]
    ),
    "zk sessions": Listing(
        zk.SESSIONS,
        [
            zk.SessionRow("0x3a1f00c4e2000017", 413, ["17"], [], NODES),
            zk.SessionRow("0x3a1f00c4e2000018", 24, [], [f"{GROUP}/{_member(1)}"], NODES),
        ],
    ),
    "zk health": Listing(
        zk.HEALTH,
        [
            zk.HealthRow(
                f"zookeeper-{n}.kafka.eu-central-1.example.org:2181",
                "ok",
                mode,
                ["ruok", "srvr", "mntr"],
                1_024,
                0,
                12_408,
                412,
                24_816,
                "3.9.5",
                None,
                {},
            )
            for n, mode in enumerate(("leader", "follower"))
        ]
        + [
            zk.HealthRow(
                "zookeeper-2.kafka.eu-central-1.example.org:2181",
                "down",
                None,
                [],
                None,
                None,
                None,
                None,
                None,
                None,
                "connection refused",
                {},
            )
        ],
    ),
    "doctor": Listing(
        doctor.DOCTOR,
        [
            doctor.Finding(doctor.Verdict.OK, "python", "3.11.9", None),
            doctor.Finding(
                doctor.Verdict.WARN,
                "disk",
                "12.4 MiB free at /var/lib/pylogctl/data/on/a/disk/that/is/mounted/far/below",
                "free some",
            ),
            doctor.Finding(
                doctor.Verdict.FAIL, "zookeeper", "localhost:2181 refuses connections", None
            ),
        ],
    ),
    "user quota": Listing(
        user.QUOTAS,
        [
            user.QuotaRow("<default>", 10 << 20, 100 << 20, 200, 1000),
            user.QuotaRow("billing," * 12, 123_456_789_012, None, None, None),
            user.QuotaRow("kafka", 0, None, 50, 20),
        ],
    ),
    "user list": Listing(
        user.USERS,
        [
            User("alice", "SCRAM-SHA-256", 16384, None),
            User("billing," * 12, "SCRAM-SHA-256", 100000, "producer_byte_rate"),
            User("kafka", None, None, "SCRAM-SHA-512, producer_byte_rate"),
        ],
    ),
    "version": Listing(
        help_.VERSIONS,
        [
            help_.VersionRow("pylogctl", "1.0"),
            help_.VersionRow("wire format", help_.WIRE_FORMAT),
            help_.VersionRow("cramjam", None),
        ],
    ),
    "-X list": Listing(
        properties.LIST,
        [
            properties.PropertyRow(
                "replica.high.watermark.checkpoint.interval.ms",
                "broker",
                "integer",
                "5000",
                None,
                "between writes of high watermarks to disk",
            ),
            properties.PropertyRow(
                "security.protocol",
                "producer",
                "PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL",
                "PLAINTEXT",
                None,
                "SSL for TLS; with SASL a user logs in",
            ),
            properties.PropertyRow(
                "topic.flush.intervals.ms",
                "broker",
                "topic:integer,topic:integer",
                "",
                "log.flush.interval.ms.per.topic",
                "the same of single topics",
            ),
        ],
    ),
    "-X dump": Listing(
        properties.DUMP,
        [
            properties.SettingRow(
                "metadata.broker.list",
                "producer",
                ",".join(f"{_host(id)}:9092" for id in range(3)),
                "/etc/pylogctl/producer.properties",
            ),
            properties.SettingRow(
                "replica.high.watermark.checkpoint.interval.ms", "broker", "5000", "default"
            ),
        ],
    ),
}


def show(name: str, env: Environment) -> None:
    """Write a listing."""
    listing = LISTINGS[name]
    render(env, listing.document, listing.rows, total=listing.total)


def as_json(name: str) -> str:
    """Return a listing as `--output json` writes it."""
    stdout = io.BytesIO()
    show(name, Environment(Streams(None, stdout, None), {}, SharedOptions(output="json")))
    return stdout.getvalue().decode()


def main() -> None:
    """Write all listings."""
    env = Environment(
        Streams.of_process(), {"TERM": os.environ["TERM"]}, SharedOptions(color="never")
    )
    for name in LISTINGS:
        print(f"{MARK}{name}", flush=True)
        show(name, env)
        env.flush()
        sys.stderr.flush()
    print(END)


if __name__ == "__main__":
    main()
