"""What a broker follows in ZooKeeper while it runs: settings, rules, keys, and ACLs of its nodes.

A node with invalid settings (it was edited by hand) stops nothing: a warning names it, and the last
settings read from it stay in effect. They are kept in the data directory too, for a restart.
"""

from __future__ import annotations

import json
import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.errors import (
    ConfigError,
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
)
from broker.files import write_atomically
from broker.log.data_directory import SETTINGS_NAME
from broker.security.cluster_keys import ClusterKeys
from broker.security.quotas import Quotas, parse_quotas, quota_texts
from broker.security.rules import NO_VERSION, StoredRules
from broker.security.users import SCRAM, Credential
from broker.threads import StoppableThread
from broker.topic_settings import TopicOverrides, normalize, parse_overrides
from broker.units import counted
from broker.zk import paths, registration, settings, watched_reads
from broker.zk.session import Session, SessionState
from broker.zk.values import decode_settings

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class ZookeeperFollower(StoppableThread):
    """Reads nodes through `_watched`, and again after each change; `name` says what they hold.

    With `period_s` it also reads them that often: ZooKeeper tells nobody of a changed ACL.
    """

    def __init__(self, name: str, session: Session, period_s: float | None = None) -> None:
        super().__init__(name)
        self._session = session
        self._period_s = period_s
        self._changed = threading.Event()
        self._watched = watched_reads.WatchedReads(session, lambda _path: self._changed.set())

    @abstractmethod
    def _read(self) -> None:
        """Read the nodes, watch them, and apply them."""

    def stop(self) -> None:
        """Ask the thread to stop; it ends at once, or when its request fails with the session."""
        super().stop()
        self._changed.set()

    def _loop(self) -> None:
        """Apply changes until the thread is stopped."""
        while True:
            self._changed.wait(self._period_s)
            self._changed.clear()
            if self._stopping.is_set():
                return
            try:
                self._read()
            except CoordinationError as error:
                if not self._stopping.is_set():
                    logger.warning("%s may be out of date: %s; trying on", self.name, error)
                    self._try_later()
            except Exception:  # must not end the thread
                logger.exception("%s could not be applied", self.name)
                self._try_later()

    def _try_later(self) -> None:
        timer = threading.Timer(_RETRY_S, self._changed.set)
        timer.daemon = True
        timer.start()


_ACL_PERIOD_S = 10.0
_SHOWN_NODES = 5


class OpenNodesFollower(ZookeeperFollower):
    """Looks at the ACLs of the brokers' nodes, at the start and every 10 s."""

    def __init__(self, session: Session) -> None:
        super().__init__("zookeeper-acls", session, _ACL_PERIOD_S)
        self.found: list[str] = []
        """Which nodes are open, and who may do what with each; replaced, never changed in place."""
        self._changed.set()

    def _read(self) -> None:
        if self._session.state is not SessionState.CONNECTED:
            return
        found = registration.open_nodes(self._session)
        if found != self.found:
            if found:
                logger.error(
                    "%s of the brokers in ZooKeeper can be changed by others: %s; "
                    "`pylogctl zk secure` closes them",
                    *(counted(len(found), "node"), ", ".join(found[:_SHOWN_NODES])),
                )
            else:
                logger.info("the brokers' nodes in ZooKeeper are closed to others again")
        self.found = found


class RulesFollower(ZookeeperFollower):
    """Reads the rules, and again after each change; what nobody may have written changes nothing.

    Nobody deletes the node: `acl remove` leaves one without rules. So one that is gone is written
    again, and one that others made again is not read.
    """

    def __init__(
        self, session: Session, clock: Clock, apply: Callable[[StoredRules, int], None]
    ) -> None:
        super().__init__("rules", session)
        self.problem = ""
        """Why the node is not used at present."""
        self.read_ms = 0
        """When it was read, since 1970."""
        self.vanished_count = 0
        """How often it was found deleted, or made again by others."""
        self._clock = clock
        self._apply = apply  # called with the rules and their version
        self._value: bytes | None = None  # of the node as it was applied last
        self._created = 0  # by which change of ZooKeeper

    def load(self) -> None:
        """Read and apply the rules, on the calling thread."""
        self._read()

    def _read(self) -> None:
        found = settings.watch_rules(self._watched)
        if found is None:
            if self._value is None:
                self._note_read(StoredRules(), NO_VERSION)
            else:
                self._write_again(self._value)
            return
        value, stat = found
        if self._session.sets_acls and self._created != stat.czxid:
            excess = self._session.excess_rights([paths.RULES, paths.CLUSTER_ID])
            found_now = self._session.exists(paths.RULES)
            if found_now is None or found_now.czxid != stat.czxid:
                self._changed.set()  # the ACL may be another node's
                return
            # before `zk secure` all nodes are open, also that which was there at the start
            is_secured = paths.CLUSTER_ID not in excess
            if (others := excess.get(paths.RULES)) and (is_secured or self._created):
                self._note_vanished(f"node {paths.RULES} was made by others: {others}")
                return
        try:
            rules = StoredRules.decode(value)
        except CoordinationError as error:
            self._note_problem(str(error))
            return
        self._value, self._created = value, stat.czxid
        self._note_read(rules, stat.version)

    def _write_again(self, value: bytes) -> None:
        self._note_vanished(f"node {paths.RULES} is gone from ZooKeeper")
        with suppress(RegistryConflictError):  # another broker was faster
            self._session.create(paths.RULES, value)
            logger.warning("node %s was written again with the last good rules", paths.RULES)

    def _note_read(self, rules: StoredRules, version: int) -> None:
        self.problem, self.read_ms = "", self._clock.time_ms()
        self._apply(rules, version)

    def _note_vanished(self, problem: str) -> None:
        self.vanished_count += self.problem != problem
        self._note_problem(problem)

    def _note_problem(self, problem: str) -> None:
        if self.problem != problem:
            logger.error("%s; the last good rules stay in effect", problem)
        self.problem = problem


class ClusterKeyFollower(ZookeeperFollower):
    """Reads the node with the keys; one that is lost while the broker runs is written again."""

    def __init__(
        self,
        session: Session,
        present: Callable[[], ClusterKeys],
        use: Callable[[ClusterKeys], None],
    ) -> None:
        super().__init__("cluster-keys", session)
        self._present = present  # returns the keys of a cluster that has none in ZooKeeper
        self._use = use  # called with the keys after each change

    def load(self, kept: ClusterKeys | None) -> ClusterKeys:
        """Return the keys in ZooKeeper; those of the file, or new ones, if there are none."""
        with suppress(RegistryNodeNotFoundError):
            return self._get()
        with suppress(RegistryConflictError):  # another broker was faster
            self._session.create(paths.CLUSTER_KEYS, (kept or self._present()).encode())
        return self._get()

    def _get(self) -> ClusterKeys:
        self._watched.exists(paths.CLUSTER_KEYS)
        return ClusterKeys.decode(self._session.get(paths.CLUSTER_KEYS)[0], _NODE)

    def _read(self) -> None:
        try:
            self._use(self._get())
        except ConfigError as error:
            logger.error("%s: those of before stay in use", error)
        except RegistryNodeNotFoundError:
            logger.warning("ZooKeeper has lost %s: it is written again", paths.CLUSTER_KEYS)
            with suppress(RegistryConflictError):
                self._session.create(paths.CLUSTER_KEYS, self._present().encode())


_NODE = f"node {paths.CLUSTER_KEYS} of ZooKeeper"


class Overrides(NamedTuple):
    """The settings of this broker, by name, and of topics, that override those of its start."""

    broker: Mapping[str, str]
    topics: Mapping[str, TopicOverrides]
    users: Mapping[str, Quotas] = {}
    credentials: Mapping[str, Credential] = {}  # of users
    mock_secret: bytes = b""  # for those that are not there


class SettingsFollower(ZookeeperFollower):
    """Reads the settings in ZooKeeper, and again after each change."""

    def __init__(
        self, session: Session, broker_id: int, data_dir: Path, apply: Callable[[Overrides], None]
    ) -> None:
        super().__init__("settings", session)
        self.problems: Mapping[str, str] = {}  # by path; replaced, never changed in place
        self.applied = Overrides({}, {})
        self._registry = settings.SettingsRegistry(session)
        self._broker_id = broker_id
        # the last good settings
        self._file = data_dir / SETTINGS_NAME
        self._apply = apply  # called at `load`, and after each change in the thread
        self._good: dict[str, dict[str, str]] = {}
        self._credentials: dict[str, Credential] = {}  # of users, by path; in memory only

    def load(self) -> None:
        """Read and apply the settings, on the calling thread."""
        self._good = self._read_file()
        self._read()

    def last_good(self, topic: str) -> Mapping[str, str]:
        """Return the overrides of a topic in effect, by name; callable from any thread."""
        return self._good.get(paths.topic_settings(topic), {})

    def _read(self) -> None:
        """Read all nodes, watch them, and apply the valid ones."""
        values = self._registry.read_all(self._broker_id, self._watched)
        mock_secret = values.pop(paths.MOCK_SECRET, b"")
        good: dict[str, dict[str, str]] = {}
        credentials: dict[str, Credential] = {}
        problems: dict[str, str] = {}
        for path, value in values.items():
            try:
                good[path] = self._parse(path, value)
                if (credential := _credential(path, value)) is not None:
                    credentials[path] = credential
            except (CoordinationError, ConfigError) as error:
                problems[path] = str(error)
                if path in self._good:
                    good.setdefault(path, self._good[path])
                if path in self._credentials:
                    credentials[path] = self._credentials[path]
                if self.problems.get(path) != str(error):
                    logger.warning(
                        "the settings in node %s of ZooKeeper are not used: %s; %s",
                        *(path, error),
                        "the last good ones stay in effect"
                        if path in self._good
                        else "there are no earlier ones, so those of the broker's start hold",
                    )
        for path in self.problems.keys() - problems.keys():
            logger.info("the settings in node %s of ZooKeeper can be used again", path)
        if good != self._good:
            self._write_file(good)
        self._good, self.problems, self._credentials = good, problems, credentials
        overrides = self._overrides()._replace(
            credentials={paths.user_of(path): one for path, one in credentials.items()},
            mock_secret=mock_secret,
        )
        self._apply(overrides)
        self.applied = overrides

    def _parse(self, path: str, value: bytes) -> dict[str, str]:
        texts = decode_settings(path, value)
        if _is_user(path):  # whose keys must not get into the file
            parse_quotas(texts)
            return quota_texts(texts)
        if path == paths.broker_settings(self._broker_id):
            return BrokerConfig.normalize_overrides(texts)
        return normalize(texts)

    def _overrides(self) -> Overrides:
        own = paths.broker_settings(self._broker_id)
        return Overrides(
            self._good.get(own, {}),
            {
                path.rpartition("/")[2]: parse_overrides(texts)
                for path, texts in self._good.items()
                if path != own and not _is_user(path)
            },
            {
                paths.user_of(path): parse_quotas(texts)
                for path, texts in self._good.items()
                if _is_user(path) and texts
            },
        )

    def _read_file(self) -> dict[str, dict[str, str]]:
        try:
            found: dict[str, object] = json.loads(self._file.read_bytes())
            return {
                path: self._parse(path, json.dumps({"config": texts}).encode())
                for path, texts in found.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, CoordinationError, ConfigError) as error:
            logger.warning("the settings kept in %s are not used: %s", self._file, error)
            return {}

    def _write_file(self, good: Mapping[str, Mapping[str, str]]) -> None:
        try:
            write_atomically(self._file, json.dumps(good, indent=1).encode())
        except OSError as error:
            logger.warning("cannot keep the settings in effect in %s: %s", self._file, error)


def _is_user(path: str) -> bool:
    return path.startswith(f"{paths.USERS}/")


def _credential(path: str, value: bytes) -> Credential | None:
    """Return what a user's password is checked with."""
    if not _is_user(path) or path.endswith(f"/{paths.DEFAULT_USER}"):
        return None
    text = decode_settings(path, value).get(SCRAM)
    return None if text is None else Credential.decode(text)
