"""The credential of an embedded ZooKeeper, as its clients on the machine find it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from broker.zk.security import NOTE_NAME, SECRET_NAME, found_security, make_credential


def test_credential_beside_a_process_is_found_only_if_its_user_has_the_port(tmp_path: Path) -> None:
    make_credential(tmp_path / SECRET_NAME)
    with (
        socket.socket() as server,
        subprocess.Popen(
            [sys.executable, "-c", "input()"], cwd=tmp_path, stdin=subprocess.PIPE
        ) as process,
    ):
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        (tmp_path / NOTE_NAME).write_text(json.dumps({"port": port, "pid": process.pid}))
        assert found_security([("localhost", port)]).credential is None  # anybody may claim that
        server.listen()
        assert found_security([("localhost", port)]).credential is not None
        process.communicate(b"\n")
