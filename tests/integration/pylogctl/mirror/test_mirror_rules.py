"""A mirror whose user loses its right in the target."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from broker.admin.rules import add_rules, remove_rules
from broker.admin.users import set_credential
from broker.properties import Secret
from broker.protocol.codec import decode
from broker.security.principal import Principal
from broker.security.rules import Operation, Rule, parse_pattern
from broker.security.scram import make_credential
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.mirror.test_mirror import fill, numbers
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

TOPICS = parse_pattern("topic:*")[0]
MAY_SEE, MAY_WRITE = (
    Rule(Principal("User", "mirror"), one, TOPICS) for one in (Operation.DESCRIBE, Operation.ALL)
)


def test_mirror_when_its_right_is_taken_away_then_ends_and_goes_on_where_it_was(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    spawn: Spawn,
    tmp_path: Path,
) -> None:
    source = start_broker(zookeeper=zookeeper, data_dir=tmp_path / "source")
    target = start_broker(
        zookeeper=f"{zookeeper}/target",
        broker_id=7,
        data_dir=tmp_path / "target",
        enforces_rules=True,
        super_users="User:root",
    )
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("pencil")
    config = tmp_path / "pylogctl" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        f'[contexts.target]\nbrokers = "127.0.0.1:{target.port}"\nuser = "mirror"\n'
        f'password_file = "{password}"\n'
    )
    words = ("mirror", "run", "--from", zookeeper, "--to", "target", "--include", "t", "--yes")
    env = {"XDG_CONFIG_HOME": str(tmp_path)}

    def mirrored() -> list[bytes]:
        files = sorted((tmp_path / "target" / "t_0").glob("*.pylog"))
        data = b"".join(one.read_bytes() for one in files)
        return [bytes(one) for _, _, one in decode(data, 0).messages]

    def await_rules(version: int) -> None:
        wait_until(lambda: target.status()["rules"]["version"] == version, "the rules")

    with Session(f"{zookeeper}/target") as rules:
        set_credential(rules, "mirror", make_credential(Secret("pencil"), 4096))
        await_rules(add_rules(rules, [MAY_SEE, MAY_WRITE], is_dry_run=False).version)
        fill(source, "t", numbers(0, 100))
        await_registered(session)
        with spawn(*words, env=env, stderr=subprocess.PIPE) as mirror:
            wait_until(lambda: len(mirrored()) == 100, "the first messages")
            await_rules(remove_rules(rules, [2], is_dry_run=False).version)
            fill(source, "t", numbers(100, 200))
            _, stderr = mirror.communicate(timeout=120)
        assert mirror.returncode == ExitStatus.NOT_ALLOWED
        assert b"write" in stderr
        assert len(mirrored()) == 100
        await_rules(add_rules(rules, [MAY_WRITE], is_dry_run=False).version)
        with spawn(*words, env=env) as mirror:
            wait_until(lambda: len(mirrored()) == 200, "the other messages")
            mirror.terminate()
            mirror.communicate(timeout=60)
    assert mirror.returncode == ExitStatus.OK
    assert mirrored() == numbers(0, 200)
