"""Applies settings from ZooKeeper while the broker runs: its own, and those of topics and users.

A node with invalid settings (it was edited by hand) stops nothing: a warning names it, and the last
settings read from it stay in effect. They are kept in the data directory too, for a restart.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.errors import ConfigError, CoordinationError
from broker.files import write_atomically
from broker.log.data_directory import SETTINGS_NAME
from broker.security.quotas import Quotas, parse_quotas, quota_texts
from broker.security.users import SCRAM, Credential
from broker.server.cluster.followed import ZookeeperFollower
from broker.topic_settings import TopicOverrides, normalize, parse_overrides
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry
from broker.zk.values import decode_settings

logger = logging.getLogger(__name__)


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
        self._registry = SettingsRegistry(session)
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
