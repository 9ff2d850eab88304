"""A file system without room: a broker starts there, and topics can be deleted to make some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.process import full_disk
from tests.integration.process.broker_process import REPOSITORY

MOUNT = 'mount -t tmpfs -o size=2m,nr_inodes=200,mode=750 none "$0" && exec "$@"'


@pytest.mark.parametrize("scenario", ["retention", "deletion", "log"])
def test_broker_when_the_disk_is_full_then(tmp_path: Path, scenario: str) -> None:
    """See the function of that name in `full_disk`."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(disk)]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(
        [*mounted, sys.executable, "-m", full_disk.__name__, scenario, str(disk)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
