"""The guide from nothing to a closed cluster runs in a shell as it stands, but for its ports."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tests.integration.test_readme import Shell
from tests.support.command_line import REPOSITORY
from tests.support.ports import port_of_its_own

_DEADLINE_S = 240
_STRANGER = """
for node in /acls /controller /controller_epoch /consumers; do
    pylogctl zk rm -R $node -Z localhost:2181 --yes --confirm $node 2>&1 || true
done
pylogctl zk create /planted -Z localhost:2181 --yes 2>&1 || true
pylogctl zk ls -Z localhost:2181
"""


def _guide() -> str:
    """Return the commands of the guide's first section."""
    text = (REPOSITORY / "docs/operations/security.md").read_text(encoding="utf-8")
    section = text.partition("## From nothing to a closed cluster")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", section, flags=re.MULTILINE)
    return "\n".join(map(textwrap.dedent, blocks))


def test_guide_when_run_then_alone_a_user_with_rights_sees_the_topic(tmp_path: Path) -> None:
    shell = Shell(tmp_path, zookeeper="")
    del shell.environment["PYLOGCTL_ZOOKEEPER"]
    zookeeper, first, second, third = (str(port_of_its_own()) for _ in range(4))
    script = (_guide() + _STRANGER).replace("909$id", "${ports[id]}").replace("9091", first)
    script = script.replace("2181", zookeeper).replace("zk start", f"zk start --port {zookeeper}")
    ports = f"ports=({zookeeper} {first} {second} {third})\n"
    written = shell.run(ports + script, _DEADLINE_S)
    assert "hello\n" in written
    assert "lost by disks                     ok" in written  # of cluster health, the last check
    stranger, _, alice = written.rpartition("no topics")
    assert "orders" in alice, written
    assert "orders" in stranger
    assert "status 15" in alice
    refused, _, left = alice.rpartition("NAME\n")
    assert refused.count("does not allow this with node") == 5, refused
    assert {"acls", "consumers", "controller", "controller_epoch"} < set(left.split())
    assert "planted" not in left
