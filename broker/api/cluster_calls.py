"""The calls of a client on brokers and the cluster."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from broker.api import values
from broker.api.access import LAST_LOOK_S, Access, limit_of
from broker.api.values import UNSET, PartitionLike, Timeout
from broker.client.side import Side
from broker.protocol.responses import HIDDEN_CLUSTER
from broker.topic import TopicPartition

if TYPE_CHECKING:  # what does the work is imported by the calls, as most programs make none of them
    from broker.admin.brokers import BrokerStatus, StopReport
    from broker.admin.cluster import BrokerInfo, Health
    from broker.admin.decommission import Decommission
    from broker.admin.log_moves import LogMove
    from broker.api.changes import Changes


class ClusterCalls(Access):
    """The calls of a client on brokers and the cluster."""

    @property
    def cluster_id(self) -> str:
        """The ZooKeeper of the brokers, as they name it; empty if they have none or do not tell.

        Of brokers of Kafka 0.7 it is the address given to `connect`, empty if that was theirs.

        Raises:
            Unreachable: no broker responds.
        """
        with self._call():
            found = self._repeated(self._cluster_id)
            if found in ("", HIDDEN_CLUSTER):
                return "" if self._registry is None else self._registry.connect
            return found

    def brokers(self, *, timeout: Timeout = UNSET) -> list[BrokerInfo]:
        """Return the live brokers, and those that replicas are assigned to, by id.

        Any one broker tells of all that share its ZooKeeper; without one, those given to `connect`
        tell of themselves.

        Args:
            timeout: seconds for each response; by default the client's.

        Raises:
            Unreachable, TimedOut: no broker responds.
        """
        from broker.admin.cluster import list_brokers

        return self._ask(list_brokers, timeout)

    def broker(self, id: int, *, timeout: Timeout = UNSET) -> BrokerStatus:
        """Return the state of a live broker: its disks, connections, session and metrics.

        Raises:
            UnknownBroker: no broker has this id.
            Unreachable, TimedOut: it is down, or does not respond.
        """
        from broker.admin.brokers import find_broker, require_status

        values.broker_id_of(id)
        return self._ask(lambda side: require_status(side.connect, find_broker(side, id)), timeout)

    def health(self, *, timeout: Timeout = UNSET) -> Health:
        """Check that brokers are there, disks work, partitions are led, and replicas are in sync.

        Raises:
            NotSupported: all brokers are of Kafka 0.7, which tell nothing of this.
            Unreachable, TimedOut: no broker responds; one that is gone is a check that fails.
        """
        from broker.admin.cluster import check_health

        return self._ask(partial(check_health, registry=self._registry), timeout)

    def changes(
        self,
        *,
        topic: str | None = None,
        partition: PartitionLike | None = None,
        since: datetime | None = None,
        follow: bool = False,
        timeout: Timeout = UNSET,
    ) -> Changes:
        """Return who led what, when and why: the state-change logs of all brokers in one order.

        Epochs count before clocks: a later controller epoch, and a later leader epoch of a
        partition, come later.

        Args:
            topic: only this topic. Changes of the controller and of whole brokers always come.
            partition: only these partitions.
            since: only what happened from then on, by the clocks of the brokers.
            follow: go on with what comes, within about two seconds, until `close`. What a broker
                that was away has written down comes when it is back.
            timeout: seconds for each response; by default the client's, and at most 5 to follow.

        Raises:
            NotSupported: all brokers are of Kafka 0.7, which keep no such log.
            Unreachable, TimedOut: no broker responds; those that do not are in `Changes.missing`.
        """
        from broker.admin.changes import selecting
        from broker.api.changes import Changes

        selects = selecting(
            None if topic is None else values.topic_of(topic),
            None if partition is None else values.matcher_of(partition),
            None if since is None else values.ms_of("since", since),
        )
        return self._ask(
            lambda side: Changes(side, selects, follow=follow, is_open=lambda: not self.closed),
            timeout,
        )

    def stop_broker(
        self,
        id: int,
        *,
        force: bool = False,
        with_zookeeper: bool = False,
        timeout: Timeout = UNSET,
    ) -> StopReport:
        """Shut a broker down without losing anything, and return once the others know.

        It deregisters, waits for clients to disconnect, refuses new data, flushes its logs and
        marks them as clean.

        Args:
            force: do not wait for producers of Kafka 0.7; logs are still flushed.
            with_zookeeper: stop also a broker that runs the ZooKeeper which others use.
            timeout: seconds until it has stopped; by default the client's.

        Raises:
            UnknownBroker: no live broker has this id.
            Conflict: it runs the ZooKeeper of other brokers, or of members of groups.
            NoZooKeeper: it runs a ZooKeeper, and who uses that cannot be seen from here.
            NotSupported: it is of Kafka 0.7: send its process SIGTERM.
            TimedOut: it has not stopped in time, and may still be stopping; nothing was killed.
        """
        from broker.admin import brokers

        values.broker_id_of(id)
        with self._asking(timeout) as side:
            address = brokers.find_broker(side, id)
            response = brokers.request_status(side.connect, address)
            if response.error is not None and not with_zookeeper:
                raise response.error  # whether it runs a ZooKeeper is not known
            status = response.document or {}
            runs_zookeeper = status.get("runs_zookeeper", False)
            if runs_zookeeper and not with_zookeeper:
                session = self._zookeeper().session
                brokers.validate_unused(session, address, status["zookeeper"])
            return brokers.stop_broker(side, address, force=force, takes_zookeeper=runs_zookeeper)

    def decommission(
        self, id: int, *, throttle: int | None = None, plan: bool = False, timeout: Timeout = UNSET
    ) -> Decommission:
        """Move all replicas away from a broker, and return once the others have copied all.

        A call that is repeated waits for what is under way. Then stop the broker before other
        topics are created.

        Args:
            id: of a broker, which may be dead.
            throttle: bytes per second that each broker may copy, for all that is under way; 0 for
                no limit, None to leave it as it is.
            plan: whether to return what would move, and change nothing.
            timeout: seconds until all is copied; by default the client's, None for no limit.

        Raises:
            UnknownBroker: it is not live, and no partition is on it.
            Partial: partitions without replicas stay on it, of the topics in `failed`.
            Conflict: TOO_FEW_BROKERS, or a change of replicas was refused or cancelled.
            TimedOut: brokers still copy, and go on.
            NotSupported: all brokers are of Kafka 0.7.
        """
        from broker.admin.decommission import decommission

        values.broker_id_of(id)
        if throttle is not None:
            values.whole_of("throttle", throttle, 0)
        seconds = self._seconds(timeout)
        with self._call(seconds if plan or seconds is None else seconds + LAST_LOOK_S):
            side = Side(self._cluster, self._connect, limit_of(self._timeout_s))
            return decommission(side, id, throttle=throttle, is_dry_run=plan, timeout_s=seconds)

    def move_log(
        self,
        partition: TopicPartition | str,
        directory: str,
        broker: int | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> LogMove:
        """Move a log to another data directory of its broker, and return once it is there.

        The partition is read and written meanwhile; at the end its appends wait for a moment.

        Args:
            partition: `"orders[0-1]"`, or a `TopicPartition`.
            directory: a data directory of the broker, as its settings name it.
            broker: whose log, of a partition with replicas; by default its home broker's, or its
                leader's.
            timeout: seconds until it is moved; by default the client's, None for no limit.

        Raises:
            UnknownBroker: no live broker has this id.
            NotSupported: the broker is of Kafka 0.7.
            Refused: the log is not on this broker, or is in this directory; or that is none of its.
            TimedOut: it is still being moved, and that goes on.
            Unreachable: the broker was lost; the log is whole, in one directory or the other.
        """
        from broker.admin.log_moves import find_holder, move_log, parse_log_name

        if isinstance(partition, str):
            partition = parse_log_name(partition)
        if not isinstance(partition, TopicPartition):
            raise TypeError(
                "give the partition as 'TOPIC[HOME-INDEX]' or as a TopicPartition, not "
                f"{type(partition).__name__}"
            )
        if not isinstance(directory, str):
            raise TypeError(f"give the directory as str, not {type(directory).__name__}")
        broker_id = None if broker is None else values.broker_id_of(broker)
        with self._waiting(timeout) as seconds:
            address = find_holder(Side(self._cluster, self._connect), partition, broker_id)
            return move_log(self._connect, address, partition, directory, timeout_s=seconds)
